// Puts hostile requests together, and several of them into what one connection is sent at once.

import { basePath } from '../../packages/contract/routes.ts';
import { type Broken, brokenBytes } from './broken-bytes.ts';
import { authorization, type Keyring } from './keyring.ts';
import type { Aim, Model } from './model.ts';
import {
  hosts,
  type Junk,
  manyHeaders,
  oddContentType,
  oddHeader,
  oddTarget,
} from './odd-parts.ts';
import { Planner } from './plans.ts';
import type { Random } from './random.ts';

/** One request that is framed soundly, however odd, and must be answered once. */
export interface Hostile {
  readonly bytes: Buffer;
  readonly head: string;
  readonly method: string;
  readonly aim: Aim;
  /** Correlations that the caller made up. */
  readonly madeUpIds: readonly string[];
}

export interface Last extends Broken {
  /** Of the request that it was made from, should somebody understand it nevertheless. */
  readonly aim: Aim;
}

export interface Batch {
  readonly whole: readonly Hostile[];
  /** Bytes after the last whole request: no request at all, or one that was cut off or misshapen. */
  readonly last: Last | undefined;
  /** What the sender does once everything is sent. */
  readonly afterwards: 'stays' | 'says no more' | 'vanishes';
  readonly writes: 1 | 2 | 3;
}

export interface Lot {
  readonly lane: number;
  readonly random: Random;
  readonly junk: Junk;
  readonly keys: Keyring;
  readonly model: Model;
  readonly foreignWorkspace: string;
}

export class RequestMaker {
  readonly #lot: Lot;
  readonly #random: Random;
  readonly #planner: Planner;
  #names = 0;

  constructor(lot: Lot) {
    this.#lot = lot;
    this.#random = lot.random;
    const { random, junk, model, foreignWorkspace } = lot;
    this.#planner = new Planner(random, junk, model, foreignWorkspace, () => this.#newName());
  }

  batch(): Batch {
    const random = this.#random;
    this.#planner.beginBatch();
    const whole = Array.from({ length: random.weighted(batchSizes) }, () => this.#whole());
    const harmless = whole.every(({ aim }) => isHarmless(aim));
    const afterwards = random.weighted([
      [82, 'stays'],
      [14, 'says no more'],
      [harmless ? 4 : 0, 'vanishes'],
    ] as const);
    // Only where nobody waits for the connection to stay can it be broken.
    const last = afterwards === 'stays' || random.chance(0.2) ? undefined : this.#last(afterwards);
    const writes = last === undefined && !whole.some(mayClose) ? random.weighted(writeCounts) : 1;
    return { whole, last, afterwards, writes };
  }

  #last(afterwards: Batch['afterwards']): Last {
    const random = this.#random;
    // Not HEAD: what is no request is answered with a body.
    let request = this.#whole('GET');
    // Whoever vanishes will not hear whether it was obeyed.
    while (afterwards === 'vanishes' && !isHarmless(request.aim)) request = this.#whole('GET');
    if (random.chance(0.3)) {
      const cut = random.between(1, request.bytes.length - 1);
      const bytes = request.bytes.subarray(0, cut);
      return { bytes, kind: 'cut off', aim: { kind: 'nothing' } };
    }
    return { ...brokenBytes(random, request.head, this.#smuggled()), aim: request.aim };
  }

  /** A creation that nobody asked for: only a server that misreads where a request ends would obey it. */
  #smuggled(): Buffer {
    const body = JSON.stringify({ name: `smuggled ${this.#newName()}` });
    return Buffer.from(
      `POST ${basePath}/workspaces HTTP/1.1\r\nHost: localhost\r\n` +
        `Authorization: Bearer ${this.#lot.keys.owner}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  #whole(insteadOfHead = 'HEAD'): Hostile {
    const random = this.#random;
    const planned = this.#planner.plan();
    const method = planned.method === 'HEAD' ? insteadOfHead : planned.method;
    const target = random.chance(0.35) ? oddTarget(random, planned.path) : planned.path;
    const version = random.chance(0.01) ? 'HTTP/1.0' : 'HTTP/1.1';
    const madeUpIds = random.chance(0.2) ? [this.#madeUpId()] : [];
    const framed = this.#framed(planned.body);
    const lines = [
      `${method} ${target} ${version}`,
      `Host: ${random.chance(0.95) ? 'localhost' : random.pick(hosts)}`,
      ...authorization(random, this.#lot.keys),
      ...madeUpIds.map((id) => `X-Request-ID: ${id}`),
      ...Array.from({ length: random.weighted(oddHeaderCounts) }, () => oddHeader(random)),
      ...(random.chance(0.02) ? manyHeaders(random) : []),
      ...(random.chance(0.02) ? ['Connection: close'] : []),
    ];
    const head = Buffer.from([...lines, ...framed.lines, '', ''].join('\r\n'), 'latin1');
    const bytes = Buffer.concat([head, framed.bytes]);
    return { bytes, head: lines.join('\r\n'), method, aim: planned.aim, madeUpIds };
  }

  #framed(body: Buffer | undefined): { lines: string[]; bytes: Buffer } {
    const random = this.#random;
    if (body === undefined) return { lines: [], bytes: Buffer.alloc(0) };
    const lines: string[] = [];
    if (random.chance(0.7)) {
      const plain = random.chance(0.8);
      lines.push(`Content-Type: ${plain ? 'application/json' : oddContentType(random)}`);
    }
    if (random.chance(0.04)) {
      lines.push(`Content-Encoding: ${random.pick(['gzip', 'identity', 'br', '', 'gzip, gzip'])}`);
    }
    if (random.chance(0.75)) {
      return { lines: [...lines, `Content-Length: ${body.length}`], bytes: body };
    }
    return { lines: [...lines, 'Transfer-Encoding: chunked'], bytes: this.#chunked(body) };
  }

  #chunked(body: Buffer): Buffer {
    const random = this.#random;
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length;) {
      const chunk = body.subarray(at, at + random.between(1, body.length));
      at += chunk.length;
      const extension = random.chance(0.1) ? ';a="b"' : '';
      parts.push(Buffer.from(`${chunk.length.toString(16)}${extension}\r\n`), chunk, crlf);
    }
    const trailer = random.chance(0.1) ? 'X-Request-ID: trailed\r\n' : '';
    return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
  }

  #madeUpId(): string {
    const random = this.#random;
    const [a, b, c, d, e] = [8, 4, 3, 3, 12].map((digits) => random.hex(digits));
    return random.chance(0.5) ? `${a}-${b}-4${c}-8${d}-${e}` : `mine-${random.hex(20)}`;
  }

  #newName(): string {
    this.#names += 1;
    return `w ${this.#lot.lane} ${this.#names}`;
  }
}

export function isHarmless(aim: Aim): boolean {
  return aim.kind === 'nothing' || aim.kind === 'list workspaces';
}

/**
 * Whether the answer may end the connection: asked for, an old version, or a body not read to its end. What
 * is written to a connection after that can fail, and a failed write takes unread answers with it.
 */
function mayClose({ head, bytes }: Hostile): boolean {
  const hasBody = bytes.length > head.length + 2 * crlf.length;
  return hasBody || /HTTP\/1\.0|: close|^(expect|upgrade):/im.test(head);
}

const crlf = Buffer.from('\r\n');

const batchSizes = [
  [5, 1],
  [4, 2],
  [3, 4],
  [1, 8],
] as const;
const writeCounts = [
  [8, 1],
  [1, 2],
  [1, 3],
] as const;
const oddHeaderCounts = [
  [6, 0],
  [3, 1],
  [1, 3],
] as const;
