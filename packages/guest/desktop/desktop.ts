// What the host asks of the desktop, by word: carried out on the display, answered as bytes.

import { InvalidInput } from '@cubicle/contract/desktop/invalid-input.ts';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  type ContextFound,
  type desktopAnswer,
  desktopAsks,
  type DesktopWant,
  type Gesture,
  type GestureDone,
  type GuestWindow,
  longestAsk,
  type WindowAsk,
  type WindowDone,
} from '@cubicle/contract/guest/desktop.ts';
import { decodeMessage, encodeMessage } from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Shaped } from '@cubicle/contract/guest/shape.ts';
import { NoPage, pageIn } from '../browser/pages.ts';
import { Refused } from '../refused.ts';
import { sendRead } from '../sending.ts';
import { DisplayError, type Trouble } from './trouble.ts';
import { pause, within } from './waiting.ts';
import type { WindowAction, WindowInfo } from './window.ts';
import type { DesktopBackend } from './backend.ts';
import { Input } from './input.ts';
import { Screens } from './screens.ts';

type Ask<Want extends DesktopWant> = Shaped<(typeof desktopAsks)[Want]>;
interface Told {
  readonly bytes: Buffer;
  readonly capture?: string;
  readonly width?: number;
  readonly height?: number;
}

/** A caller has three seconds for all of it. */
const pageMs = 2_000;

export class Desktop {
  readonly #backend: DesktopBackend;
  readonly #input: Input;
  readonly #screens: Screens;
  readonly #wants: { [Want in DesktopWant]: (context: Context, ask: Ask<Want>) => Promise<Told> };

  constructor(backend: DesktopBackend) {
    this.#backend = backend;
    this.#input = new Input(backend.devices);
    this.#screens = new Screens((context) => backend.grab(context));
    this.#wants = {
      screenshot: (context, ask) => this.#screens.take(context, ask),
      gesture: async (context, ask) => json(await this.#gesture(context, ask)),
      windows: async (context, { all }) => json(await this.#windows(context, all)),
      context: async (context) => json(await this.#context(context)),
      window: async (context, ask) => json(await this.#window(context, ask)),
      clipboard: async (context) => json({ text: await this.#backend.clipboard.read(context) }),
      set_clipboard: async (context, { text }) => {
        await this.#backend.clipboard.write(context, text);
        return json({});
      },
    };
  }

  async serve(channel: Channel, { want }: { readonly want: DesktopWant }): Promise<void> {
    const ask = decodeMessage(await readAsk(channel), desktopAsks[want]);
    // A caller who gives up lets go of what it holds down.
    const gone = new AbortController();
    void channel
      .until(() => channel.abandoned)
      .then(
        () => gone.abort(),
        () => gone.abort(),
      );
    const carryOut = this.#wants[want] as (context: Context, ask: unknown) => Promise<Told>;
    const told = await carryOut({ signal: gone.signal }, ask).catch((error: unknown) => {
      throw asRefused(error);
    });
    const { bytes, capture = null, width = 0, height = 0 } = told;
    const answer = { bytes: bytes.length, capture, width, height };
    channel.accept(encodeMessage(answer satisfies Shaped<typeof desktopAnswer>));
    const fill = (room: Buffer, at: number) => bytes.copy(room, 0, at, at + room.length);
    await sendRead(channel, 0, bytes.length, fill);
    channel.end();
  }

  async #gesture(context: Context, ask: Gesture): Promise<GestureDone> {
    const mechanism = await this.#perform(context, ask);
    const pointer = ask.do === 'position' ? ((await this.#input.position(context)) ?? null) : null;
    return { mechanism, pointer };
  }

  async #perform(context: Context, ask: Gesture): Promise<GestureDone['mechanism']> {
    const input = this.#input;
    switch (ask.do) {
      case 'move':
        await input.move(context, ask.to);
        break;
      case 'click':
        await input.click(context, { ...placed(ask), button: ask.button, count: ask.count });
        break;
      case 'down':
        await input.buttonDown(context, { ...placed(ask), button: ask.button });
        break;
      case 'up':
        await input.buttonUp(context, { ...placed(ask), button: ask.button });
        break;
      case 'drag': {
        const { from, to, modifiers } = ask;
        await input.drag(context, { to, modifiers, ...(from && { from }) });
        break;
      }
      case 'scroll':
        await input.scroll(context, {
          ...placed(ask),
          direction: ask.direction,
          amount: ask.amount,
        });
        break;
      case 'type':
        return input.type(context, ask.text);
      case 'paste':
        await this.#backend.clipboard.write(context, ask.text);
        await input.press(context, ask.keys);
        break;
      case 'key':
        await input.press(context, ask.keys);
        break;
      case 'hold':
        await input.hold(context, ask.keys, ask.ms);
        break;
      case 'wait':
        await pause(context, ask.ms);
        break;
      default:
    }
    return null;
  }

  async #windows(context: Context, all: boolean): Promise<{ windows: GuestWindow[] }> {
    return { windows: (await this.#backend.windows(context, { all })).map(windowOf) };
  }

  async #context(context: Context): Promise<ContextFound> {
    const windows = await this.#backend.windows(context, { all: false });
    const told = { windows: windows.map(windowOf) };
    const focused = windows.find((window) => window.focused);
    if (focused === undefined) return { ...told, page: null, trouble: 'unfocused' };
    try {
      const page = await within(context, pageMs, 'the browser did not answer', async (bounded) => {
        const box = await this.#backend.drawn(bounded, focused.id);
        if (box === undefined) throw new NoPage('hidden');
        return pageIn(bounded, { ...focused, box });
      });
      return { ...told, page, trouble: null };
    } catch (error) {
      if (error instanceof NoPage) return { ...told, page: null, trouble: error.trouble };
      throw error;
    }
  }

  async #window(context: Context, ask: WindowAsk): Promise<WindowDone> {
    const { gone, window } = await this.#backend.act(context, ask.id, actionOf(ask));
    return { gone, window: window && windowOf(window) };
  }
}

function placed(ask: {
  readonly at: { readonly x: number; readonly y: number } | null;
  readonly modifiers?: string;
}) {
  const { at, modifiers } = ask;
  return { ...(at && { at }), ...(modifiers !== undefined && { modifiers }) };
}

function actionOf({ action, place, size }: WindowAsk): WindowAction {
  if (action === 'move') {
    if (place === null) throw new Refused('invalid');
    return { action, ...place };
  }
  if (action === 'resize') {
    if (size === null) throw new Refused('invalid');
    return { action, ...size };
  }
  return { action };
}

function windowOf({ pid = null, ...window }: Omit<WindowInfo, 'pid'> & { pid?: number | null }) {
  return { ...window, pid };
}

function json(value: unknown): Told {
  return { bytes: encodeMessage(value) };
}

async function readAsk(channel: Channel): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
    size += piece.bytes.length;
    if (size > longestAsk) throw new Refused('invalid');
    pieces.push(piece.bytes);
  }
  return Buffer.concat(pieces);
}

const reasons: Record<Trouble, Refused['reason']> = {
  lost: 'no_display',
  silent: 'no_display',
  refused: 'no_display',
  too_large: 'too_large',
  invalid: 'invalid',
  unknown: 'unknown',
  gone: 'unknown',
  contention: 'busy',
  unconfirmed: 'unconfirmed',
  tiled: 'tiled',
};

function asRefused(error: unknown): unknown {
  if (error instanceof DisplayError) return new Refused(reasons[error.trouble]);
  if (error instanceof InvalidInput) return new Refused('invalid');
  return error;
}
