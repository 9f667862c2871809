// Reads request bodies: never more than its cap, never for longer than it may take.

import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { Refusal } from '@cubicle/contract/errors.ts';
import { sizeInWords } from '@cubicle/contract/limits.ts';
import { problemSentence } from '@cubicle/contract/problem.ts';
import { cutOff, lineOf } from './line.ts';

export interface BodyTimes {
  /** Without a byte for this long the upload is given up. */
  readonly idleMs: number;
  readonly totalMs: number;
}

export const bodyTimes: BodyTimes = { idleMs: 10_000, totalMs: 60_000 };

/** `proceed` answers `Expect: 100-continue`, once it is known that the body is wanted. */
export async function readJsonBody(
  request: IncomingMessage,
  body: { readonly schema: z.ZodType; readonly cap: number },
  times: BodyTimes,
  proceed: () => void,
): Promise<unknown> {
  if (!isUtf8(request.headers['content-type'])) {
    capped(request, body.cap);
    throw new Refusal('body_encoding');
  }
  return parse(await readBytes(request, body.cap, times, proceed), body.schema);
}

/** The whole body as it is, whatever its type. */
export async function readBytes(
  request: IncomingMessage,
  cap: number,
  times: BodyTimes,
  proceed: () => void,
): Promise<Buffer> {
  const tooLarge = capped(request, cap);
  const { 'content-encoding': encoding, 'transfer-encoding': transfer } = request.headers;
  const plain = encoding === undefined || encoding.toLowerCase() === 'identity';
  // Node takes the chunks apart and leaves any coding before that in place.
  const whole = transfer === undefined || transfer.trim().toLowerCase() === 'chunked';
  if (!plain || !whole) throw new Refusal('body_encoding');
  proceed();
  return collect(request, cap, times, tooLarge);
}

/** Refuses a body that announces more than its cap; answers the refusal for one that does not. */
function capped(request: IncomingMessage, cap: number): () => Refusal {
  const tooLarge = () => new Refusal('body_too_large', { limit: sizeInWords(cap) });
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) > cap) throw tooLarge();
  return tooLarge;
}

/** The raw body as it comes: throws past its cap, when it stalls, and when it is cut off. */
export async function* readUpload(
  request: IncomingMessage,
  cap: number,
  times: BodyTimes,
  proceed: () => void,
): AsyncGenerator<Buffer> {
  const tooLarge = capped(request, cap);
  proceed();
  let size = 0;
  for (;;) {
    // Not by iterating: leaving the loop would end the connection, and the refusal with it.
    const chunk = request.read() as Buffer | null;
    if (chunk !== null) {
      size += chunk.length;
      if (size > cap) throw tooLarge();
      yield chunk;
    } else if (request.readableEnded) return;
    else await more(request, times.idleMs);
  }
}

interface Patience {
  readonly refresh: () => void;
  readonly end: () => void;
}

/** A clock for what is sent. A process that stood still first reads what came meanwhile, and then judges. */
function patience(ms: number, late: () => void): Patience {
  let verdict: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    verdict = setImmediate(late);
  }, ms);
  return {
    refresh() {
      clearImmediate(verdict);
      timer.refresh();
    },
    end() {
      clearImmediate(verdict);
      clearTimeout(timer);
    },
  };
}

/** Until there is more to read, or nothing any more. */
function more(request: IncomingMessage, idleMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const idle = patience(idleMs, () => end(() => reject(new Refusal('request_timeout'))));

    function end(settle: () => void): void {
      idle.end();
      request
        .off('readable', onMore)
        .off('end', onMore)
        .off('close', onClose)
        .off('error', onClose);
      request.off(cutOff, onClose);
      settle();
    }
    function onMore(): void {
      end(resolve);
    }
    function onClose(): void {
      end(() => reject(new Refusal('body_incomplete')));
    }
    request.on('readable', onMore).on('end', onMore).on('close', onClose).on('error', onClose);
    request.on(cutOff, onClose);
    if (request.destroyed || (lineOf(request.socket).broken && !request.complete)) onClose();
  });
}

function isUtf8(contentType: string | undefined): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType ?? '')?.[1];
  return charset === undefined || /^utf-?8$/i.test(charset);
}

function collect(
  request: IncomingMessage,
  cap: number,
  times: BodyTimes,
  tooLarge: () => Refusal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stalled = () => end(() => reject(new Refusal('request_timeout')));
    const idle = patience(times.idleMs, stalled);
    const total = patience(times.totalMs, stalled);

    function end(settle: () => void): void {
      idle.end();
      total.end();
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      request.off(cutOff, onClose);
      request.pause();
      settle();
    }
    function onData(chunk: Buffer): void {
      size += chunk.length;
      if (size > cap) return end(() => reject(tooLarge()));
      idle.refresh();
      chunks.push(chunk);
    }
    function onEnd(): void {
      end(() => resolve(Buffer.concat(chunks)));
    }
    function onClose(): void {
      end(() => reject(new Refusal('body_incomplete')));
    }
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
    request.on(cutOff, onClose);
    // What happened before anybody listened is not told again.
    if (request.destroyed || (lineOf(request.socket).broken && !request.complete)) onClose();
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parse(bytes: Buffer, schema: z.ZodType): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Refusal('body_encoding');
  }
  let value: unknown;
  try {
    // Where nothing need be said, saying nothing is enough.
    value = text === '' && schema.safeParse({}).success ? {} : JSON.parse(text);
  } catch {
    throw new Refusal('body_malformed');
  }
  const checked = schema.safeParse(value, { reportInput: true });
  if (!checked.success) {
    throw new Refusal('body_refused', { problem: problemSentence(checked.error) });
  }
  return checked.data;
}
