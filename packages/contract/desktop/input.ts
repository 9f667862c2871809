// `POST /computers/{id}/input`: two vocabularies, flat and that of model tools, read into one gesture
// (wire-guest section 2). What cannot be is refused here, before a computer is resumed and a key pressed.

import { z } from 'zod';
import type { Gesture, Point } from '../guest/desktop.ts';
import { InvalidInput } from './invalid-input.ts';
import { parseChord, parseModifiers } from './key-names.ts';
import { keysOfText } from './typed-text.ts';

const number = z.number().finite();
const pair = z.tuple([number, number]);

export const actions = [
  'move',
  'mouse_move',
  'left_click',
  'right_click',
  'middle_click',
  'double_click',
  'triple_click',
  'left_click_drag',
  'left_mouse_down',
  'left_mouse_up',
  'scroll',
  'type',
  'paste',
  'key',
  'hold_key',
  'wait',
  'cursor_position',
] as const;
type Action = (typeof actions)[number];

export const inputBody = z.strictObject({
  action: z.enum(actions),
  x: number.optional(),
  y: number.optional(),
  coordinate: pair.optional().describe('`[x, y]`, instead of `x` and `y`.'),
  start_coordinate: pair
    .optional()
    .describe('Where a drag begins; the pointer’s place when absent.'),
  text: z
    .string()
    .optional()
    .describe(
      'What to type or paste; for clicks, drags and scrolls the modifiers to hold, joined by `+`.',
    ),
  key: z.string().optional().describe('A chord in one string, joined by `+`.'),
  keys: z.array(z.string().min(1)).min(1).max(16).optional(),
  button: z.string().optional(),
  scroll_direction: z.enum(['up', 'down', 'left', 'right']).optional(),
  amount: z.int().min(0).max(50).optional(),
  scroll_amount: z.int().min(0).max(50).optional(),
  duration: number.optional().describe('Seconds, more than 0 and at most 30.'),
  count: z
    .int()
    .min(1)
    .max(10)
    .optional()
    .describe('Of `left_click`, `right_click`, `middle_click`.'),
});
export type InputBody = z.infer<typeof inputBody>;

export interface Screen {
  readonly width: number;
  readonly height: number;
}

const mostTyped = 400;
const mostPasted = 8_192;
const usualScroll = 3;
const mostSeconds = 30;
const pasteKeys = { usual: ['ctrl', 'v'], terminal: ['ctrl', 'shift', 'v'] } as const;

/** Throws `InvalidInput` with a sentence for the caller. */
export function readGesture(body: InputBody, screen: Screen): Gesture {
  const read = readers[body.action];
  return read(body, screen);
}

type Reader = (body: InputBody, screen: Screen) => Gesture;

const clicks = (button: 'left' | 'right' | 'middle', fixed?: number): Reader => {
  return (body, screen) => {
    if (fixed !== undefined && body.count !== undefined) {
      throw new InvalidInput('`count` goes with left_click, right_click and middle_click only.');
    }
    const at = placeOf(body, screen);
    return {
      do: 'click',
      button,
      count: fixed ?? body.count ?? 1,
      at,
      modifiers: modifiersOf(body),
    };
  };
};

const move: Reader = (body, screen) => {
  const to = placeOf(body, screen);
  if (to === null) throw new InvalidInput('A move needs `x` and `y`.');
  return { do: 'move', to };
};

const readers: Record<Action, Reader> = {
  move,
  mouse_move: move,
  left_click: clicks('left'),
  right_click: clicks('right'),
  middle_click: clicks('middle'),
  double_click: clicks('left', 2),
  triple_click: clicks('left', 3),
  left_mouse_down: (body, screen) => ({ do: 'down', button: 'left', at: placeOf(body, screen) }),
  left_mouse_up: (body, screen) => ({ do: 'up', button: 'left', at: placeOf(body, screen) }),
  left_click_drag(body, screen) {
    const to = placeOf(body, screen);
    if (to === null) throw new InvalidInput('A drag needs `coordinate`, where it ends.');
    const { start_coordinate: start } = body;
    const from = start === undefined ? null : onScreen(start, screen);
    return { do: 'drag', from, to, modifiers: modifiersOf(body) };
  },
  scroll(body, screen) {
    const direction = body.scroll_direction ?? directionOf(body.button);
    // Flat zeros mean that no place was given.
    const nowhere = body.coordinate === undefined && body.x === 0 && body.y === 0;
    const amount = (body.amount ?? body.scroll_amount ?? 0) || usualScroll;
    const at = nowhere ? null : placeOf(body, screen);
    return { do: 'scroll', direction, amount, at, modifiers: modifiersOf(body) };
  },
  type({ text = '' }) {
    const { length } = Array.from(text);
    if (length < 1 || length > mostTyped) {
      throw new InvalidInput(`Typing takes \`text\` of 1 to ${mostTyped} characters.`);
    }
    if (!text.isWellFormed()) throw new InvalidInput('`text` must be well-formed Unicode.');
    sentence(() => keysOfText(text));
    return { do: 'type', text };
  },
  paste({ text = '', keys }) {
    const bytes = new TextEncoder().encode(text).length;
    if (bytes < 1 || bytes > mostPasted || text.includes('\0') || !text.isWellFormed()) {
      throw new InvalidInput(`Pasting takes \`text\` of 1 to ${mostPasted} bytes without NUL.`);
    }
    const { usual, terminal } = pasteKeys;
    if (keys !== undefined && keys.join('+') !== terminal.join('+')) {
      throw new InvalidInput('`keys` of a paste is absent, or ["ctrl","shift","v"].');
    }
    return { do: 'paste', text, keys: [...(keys === undefined ? usual : terminal)] };
  },
  key: (body) => ({ do: 'key', keys: keysOf(body) }),
  hold_key: (body) => ({ do: 'hold', keys: keysOf(body), ms: msOf(body) }),
  wait: (body) => ({ do: 'wait', ms: msOf(body) }),
  cursor_position: () => ({ do: 'position' }),
};

function placeOf({ x, y, coordinate }: InputBody, screen: Screen): Point | null {
  if (coordinate !== undefined) return onScreen(coordinate, screen);
  if (x === undefined && y === undefined) return null;
  if (x === undefined || y === undefined) throw new InvalidInput('`x` and `y` go together.');
  return onScreen([x, y], screen);
}

function onScreen([x, y]: readonly [number, number], { width, height }: Screen): Point {
  const point = { x: Math.round(x), y: Math.round(y) };
  if (point.x < 0 || point.y < 0 || point.x >= width || point.y >= height) {
    throw new InvalidInput(`The place is not on the screen, which is ${width}x${height}.`);
  }
  return point;
}

function modifiersOf({ text = '' }: InputBody): string {
  sentence(() => parseModifiers(text));
  return text;
}

function keysOf({ keys, key }: InputBody): string[] {
  const named = keys ?? (key === undefined || key === '' ? [] : [key]);
  if (named.length === 0) throw new InvalidInput('Name a key in `keys` or `key`.');
  sentence(() => parseChord(named));
  return named;
}

function msOf({ duration }: InputBody): number {
  if (duration === undefined || duration <= 0 || duration > mostSeconds) {
    throw new InvalidInput(`\`duration\` is more than 0 and at most ${mostSeconds} seconds.`);
  }
  return Math.max(1, Math.round(duration * 1_000));
}

function directionOf(button: string | undefined): 'up' | 'down' | 'left' | 'right' {
  if (button === 'up' || button === 'down' || button === 'left' || button === 'right')
    return button;
  throw new InvalidInput('Scrolling needs `scroll_direction`: up, down, left or right.');
}

/** What is found deeper down says what is wrong in a few words. */
function sentence(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const [first = '', ...rest] = error.message;
    throw new InvalidInput(`${first.toUpperCase()}${rest.join('')}.`);
  }
}
