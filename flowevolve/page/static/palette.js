// Colours for values from low to high, which colour-blind people can tell apart, and which grow lighter with the value.

/** Cividis (Nuñez, Anderton and Renslow, 2018) at nine places: red, green and blue from 0 to 255. */
const PLACES = [
  [0, 34, 78],
  [26, 56, 111],
  [67, 78, 108],
  [97, 101, 111],
  [125, 124, 120],
  [155, 148, 119],
  [188, 175, 111],
  [222, 203, 94],
  [254, 232, 56],
];

/** Red, green and blue, from 0 to 255, of a share from 0 to 1. */
export function sequential(share) {
  const at = Math.min(Math.max(share, 0), 1) * (PLACES.length - 1);
  const low = Math.min(Math.floor(at), PLACES.length - 2);
  return PLACES[low].map((value, part) => Math.round(value + (PLACES[low + 1][part] - value) * (at - low)));
}

/** The same as 256 pixels of an ImageData seen as 32-bit numbers, for drawing many cells. */
export function sequentialPixels() {
  const bytes = new Uint8ClampedArray(256 * 4);
  for (let place = 0; place < 256; place++) bytes.set([...sequential(place / 255), 255], place * 4);
  return new Uint32Array(bytes.buffer);
}
