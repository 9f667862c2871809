// What host and agent say to each other about the desktop: the screen, mouse and keyboard, windows, the
// clipboard. The agent looks at these shapes too, so they are checked by hand and not by zod.

import {
  either,
  fields,
  flag,
  listOf,
  matching,
  oneOf,
  type Shape,
  type Shaped,
  taggedBy,
  text,
  whole,
} from './shape.ts';
import { pageContext, pageTroubles } from './page.ts';

const orNull = <T>(shape: Shape<T>) => either(shape, oneOf(null));
/** X11 has 16 bits for a place and for a side. */
const place = whole(-32_768, 32_767);
const side = whole(1, 65_535);
const point = fields({ x: place, y: place });
export type Point = Shaped<typeof point>;

const captureId = matching(/^[0-9a-f]{16}$/);

/** `scale` in millionths. `capture`: cut from the one of this name; else one at most `most_age_ms` old. */
export const screenshotAsk = fields({
  capture: orNull(captureId),
  most_age_ms: whole(0, 60_000),
  region: orNull(fields({ x: whole(0, 65_535), y: whole(0, 65_535), width: side, height: side })),
  width: orNull(side),
  scale: orNull(whole(1, 1_000_000)),
  format: oneOf('png', 'jpeg'),
  quality: whole(1, 100),
});
export type ScreenshotAsk = Shaped<typeof screenshotAsk>;

const button = oneOf('left', 'middle', 'right');
const modifiers = text(256);
const keys = listOf(text(256), 16);
const at = orNull(point);

/** One thing that mouse or keyboard do. */
const gesture = taggedBy('do', {
  move: fields({ do: oneOf('move'), to: point }),
  click: fields({ do: oneOf('click'), button, count: whole(1, 10), at, modifiers }),
  down: fields({ do: oneOf('down'), button, at }),
  up: fields({ do: oneOf('up'), button, at }),
  drag: fields({ do: oneOf('drag'), from: at, to: point, modifiers }),
  scroll: fields({
    do: oneOf('scroll'),
    direction: oneOf('up', 'down', 'left', 'right'),
    amount: whole(1, 50),
    at,
    modifiers,
  }),
  type: fields({ do: oneOf('type'), text: text(800) }),
  paste: fields({ do: oneOf('paste'), text: text(8_192), keys }),
  key: fields({ do: oneOf('key'), keys }),
  hold: fields({ do: oneOf('hold'), keys, ms: whole(1, 30_000) }),
  wait: fields({ do: oneOf('wait'), ms: whole(1, 30_000) }),
  position: fields({ do: oneOf('position') }),
});
export type Gesture = Shaped<typeof gesture>;

/** `mechanism` of typing, `pointer` where it was asked for; both null otherwise. */
export const gestureDone = fields({
  mechanism: orNull(oneOf('physical', 'unicode', 'mixed')),
  pointer: orNull(point),
});
export type GestureDone = Shaped<typeof gestureDone>;

const windowId = matching(/^0x[0-9a-f]{1,8}$/);

const guestWindow = fields({
  id: windowId,
  title: text(1_024),
  class: text(256),
  type: text(64),
  pid: orNull(whole(0, 2 ** 31 - 1)),
  x: whole(-65_536, 65_536),
  y: whole(-65_536, 65_536),
  width: whole(0, 65_536),
  height: whole(0, 65_536),
  focused: flag,
  visible: flag,
});
export type GuestWindow = Shaped<typeof guestWindow>;

const windowsAsk = fields({ all: flag });
export const windowsFound = fields({ windows: listOf(guestWindow, 500) });

/** What is there right now. One of `page` and `trouble` is null. */
export const contextFound = fields({
  windows: listOf(guestWindow, 500),
  page: orNull(pageContext),
  trouble: orNull(oneOf(...pageTroubles)),
});
export type ContextFound = Shaped<typeof contextFound>;

const windowAsk = fields({
  id: windowId,
  action: oneOf('focus', 'raise', 'minimize', 'maximize', 'unmaximize', 'close', 'move', 'resize'),
  /** Of `move`. */
  place: orNull(point),
  /** Of `resize`. */
  size: orNull(fields({ width: side, height: side })),
});
export type WindowAsk = Shaped<typeof windowAsk>;

export const windowDone = fields({ gone: flag, window: orNull(guestWindow) });
export type WindowDone = Shaped<typeof windowDone>;

export const clipboardText = fields({ text: text(131_072) });

export const nothing = fields({});

/** What is asked, by its word, and how the JSON of its answer looks. A screenshot is answered by bytes. */
export const desktopAsks = {
  screenshot: screenshotAsk,
  gesture,
  windows: windowsAsk,
  context: nothing,
  window: windowAsk,
  clipboard: nothing,
  set_clipboard: clipboardText,
} as const;
export type DesktopWant = keyof typeof desktopAsks;
export const desktopWants = Object.keys(desktopAsks) as DesktopWant[];

/** The bytes follow as data of stream 0. The other fields are those of a screenshot. */
export const desktopAnswer = fields({
  bytes: whole(0, 64 * 1024 * 1024),
  capture: orNull(captureId),
  width: whole(0, 65_535),
  height: whole(0, 65_535),
});
/** The JSON of an ask, of which a clipboard's text is the longest. */
export const longestAsk = 512 * 1024;
export const longestTold = 2 * 1024 * 1024;
