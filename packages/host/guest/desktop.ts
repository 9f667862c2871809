// The desktop of a guest: what is asked of it, and what it answers, checked.

import {
  clipboardText,
  contextFound,
  desktopAnswer,
  type desktopAsks,
  type DesktopWant,
  gestureDone,
  longestTold,
  nothing,
  type ScreenshotAsk,
  windowDone,
  windowsFound,
} from '@cubicle/contract/guest/desktop.ts';
import { decodeMessage, encodeMessage, type Refusal } from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Shape, Shaped } from '@cubicle/contract/guest/shape.ts';
import { sizes } from '@cubicle/contract/guest/sizes.ts';
import type { Answered, Guest } from './guest.ts';
import { type Failed, outcome, refusedDesktop, type Result } from './result.ts';
import { content } from './streams.ts';

/** What the JSON of an answer looks like. */
const told = {
  gesture: gestureDone,
  windows: windowsFound,
  context: contextFound,
  window: windowDone,
  clipboard: clipboardText,
  set_clipboard: nothing,
} as const;
export type ToldWant = keyof typeof told;
type Ask<Want extends DesktopWant> = Shaped<(typeof desktopAsks)[Want]>;
export type Told<Want extends ToldWant> = Shaped<(typeof told)[Want]>;

export interface Screenshot {
  readonly capture: string;
  readonly width: number;
  readonly height: number;
  readonly length: number;
  readonly content: AsyncIterable<Buffer>;
}

export async function askDesktop<Want extends ToldWant>(
  context: Context,
  guest: Guest,
  want: Want,
  ask: Ask<Want>,
): Promise<Result<{ readonly told: Told<Want> }>> {
  const result = await send(context, guest, want, ask);
  if (!result.ok) return result;
  const { bytes } = result.answer;
  try {
    if (bytes > longestTold) result.fault('an answer that is too long');
    const text = Buffer.concat(await Array.fromAsync(content(result, bytes, bytes)));
    const shape = told[want] as Shape<Told<Want>>;
    return { ok: true, told: decoded(text, shape, result.fault) };
  } catch (error) {
    return outcome(error);
  }
}

export async function takeScreenshot(
  context: Context,
  guest: Guest,
  ask: ScreenshotAsk,
): Promise<Result<Screenshot>> {
  const result = await send(context, guest, 'screenshot', ask);
  if (!result.ok) return result;
  const { bytes: length, capture, width, height } = result.answer;
  try {
    if (capture === null || width === 0 || height === 0 || length === 0) {
      return result.fault('a screenshot of nothing');
    }
    return { ok: true, capture, width, height, length, content: content(result, length, length) };
  } catch (error) {
    return outcome(error);
  }
}

function send<Want extends DesktopWant>(
  context: Context,
  guest: Guest,
  want: Want,
  ask: Ask<Want>,
): Promise<Result<Answered<Shaped<typeof desktopAnswer>>>> {
  const refused = (refusal: Refusal): Failed => refusedDesktop(refusal, want);
  return guest.ask(context, { op: 'desktop', want }, desktopAnswer, refused, async (channel) => {
    const bytes = encodeMessage(ask);
    for (let at = 0; at < bytes.length; at += sizes.payload) {
      if (!(await channel.send(0, bytes.subarray(at, at + sizes.payload)))) return;
    }
    channel.end();
  });
}

function decoded<T>(text: Buffer, shape: Shape<T>, fault: (message: string) => never): T {
  try {
    return decodeMessage(text, shape);
  } catch {
    return fault('an answer of the wrong shape');
  }
}
