// What the views share: colours of roles, stages and states, and how numbers are said.

const ROLES = ["task", "reflection", "judge", "curator", "embedding"];
const PALETTE = ["blue", "orange", "green", "purple", "sky", "red", "yellow", "grey"];

/** The CSS colour of a role, for style and canvas: the same role has the same colour in every view. */
export function roleColour(role) {
  return colour(PALETTE[place(ROLES, role)]);
}

/** The CSS colour of a stage by its place in the graph. */
export function stageColour(number) {
  return colour(PALETTE[number % PALETTE.length]);
}

/** The value of a colour of style.css, such as "blue" or "line", in the present theme. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function place(known, name) {
  const at = known.indexOf(name);
  if (at >= 0) return at;
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 1000003;
  return known.length + (sum % (PALETTE.length - known.length));
}

const DASH = "–";

/** Seconds as "0.42 s", "35 s", "4:05 min" or "2:05 h". */
export function seconds(value) {
  if (value == null) return DASH;
  if (value < 1) return `${value.toFixed(2)} s`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (value < 7200) return `${Math.floor(value / 60)}:${two(value % 60)} min`;
  return `${Math.floor(value / 3600)}:${two((value % 3600) / 60)} h`;
}

/** A score with four digits behind the point, as everywhere in flowevolve. */
export function score(value) {
  return value == null ? DASH : value.toFixed(4);
}

/** A whole number with separators; a large one in thousands or millions with `short`. */
export function number(value, short = false) {
  if (value == null) return DASH;
  if (short && value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (short && value >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  return value.toLocaleString("en");
}

export function dollars(value) {
  return value == null ? DASH : `$${value.toFixed(value < 1 ? 4 : 2)}`;
}
