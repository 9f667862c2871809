// What the agent tells of the page in a browser's window (wire-guest section 2), and what the script in the
// page tells the agent. Both come from where a page may have had its hand in.

import {
  either,
  fields,
  flag,
  listOf,
  number,
  oneOf,
  type Shape,
  type Shaped,
  whole,
  words,
} from './shape.ts';

/** In UTF-16 units; elements as a count. What is longer is cut, but an address: half of one leads elsewhere. */
export const pageLimits = {
  elements: 150,
  tag: 40,
  role: 40,
  name: 160,
  text: 240,
  href: 1_024,
  title: 512,
  url: 2_048,
} as const;

const orNull = <T>(shape: Shape<T>) => either(shape, oneOf(null));

const said = {
  tag: words(pageLimits.tag),
  role: words(pageLimits.role),
  name: words(pageLimits.name),
  text: words(pageLimits.text),
  href: orNull(words(pageLimits.href)),
};
const about = {
  url: words(pageLimits.url),
  title: words(pageLimits.title),
  truncated: flag,
};

/** On the screen. */
const place = whole(-32_768, 65_535);
const side = whole(1, 65_535);
export const pageContext = fields({
  ...about,
  elements: listOf(
    fields({ ...said, x: place, y: place, width: side, height: side }),
    pageLimits.elements,
  ),
});
export type PageContext = Shaped<typeof pageContext>;

/** Why there is no page to tell of; the server has the sentences. */
export const pageTroubles = [
  'unfocused',
  'no_browser',
  'closed',
  'hidden',
  'silent',
  'misplaced',
] as const;
export type PageTrouble = (typeof pageTroubles)[number];

/** In the units of style sheets, from the corner of the page's view. */
const length = number(-10_000_000, 10_000_000);
const box = { x: length, y: length, width: length, height: length };

/** What the script in a page answers; null in a page that is not to be seen. */
export const pageSeen = fields({
  ...about,
  focused: flag,
  /** The corner of the browser's window on the screen, and its size. */
  window: fields(box),
  /** The page's view with its scroll bars, in units of style sheets. */
  width: length,
  height: length,
  /** Pixels of the screen by such a unit. */
  ratio: number(0.01, 100),
  /** Where fingers have zoomed to, and how far. */
  zoomed: fields({ x: length, y: length, scale: number(0.01, 100) }),
  elements: listOf(fields({ ...said, ...box }), pageLimits.elements),
});
export type PageSeen = Shaped<typeof pageSeen>;
