// Texts of candidates, models and tasks as they can be shown: no character in them acts on the page around them.

// Control characters but tab and line feed, and those that turn the direction of writing or take no room.
const ACTING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** A text in which a picture or the number stands for each character that would act on what shows it. */
export function tame(text) {
  return text.replaceAll("\r\n", "\n").replace(ACTING, (found) => {
    const number = found.codePointAt(0);
    if (number === 127) return "\u2421";
    return number < 32 ? String.fromCodePoint(0x2400 + number) : `\\u${number.toString(16).padStart(4, "0")}`;
  });
}
