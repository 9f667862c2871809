// Certificates for receivers under test, made as they are needed: an authority, and what it issues.

import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Wish {
  /** Host names and IPv4 addresses. */
  readonly names: readonly string[];
  readonly from?: Date;
  readonly until?: Date;
}

const dayMs = 86_400_000;

export class Authority {
  readonly #key: KeyObject;
  readonly #name: string;
  readonly cert: string;

  constructor(name = 'Tests') {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    this.#name = name;
    const isAuthority = extension('551d13', sequence(der(0x01, Buffer.from([0xff]))), true);
    this.cert = this.#signed(name, publicKey, [isAuthority], {});
  }

  issue({ names, ...times }: Wish): Certificate {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const alternatives = names.map((name) =>
      isIPv4(name)
        ? der(0x87, Buffer.from(name.split('.').map(Number)))
        : der(0x82, Buffer.from(name)),
    );
    const cert = this.#signed(
      names[0] ?? '',
      publicKey,
      [extension('551d11', sequence(...alternatives))],
      times,
    );
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
  }

  /** Signed by a key that is not the authority's. */
  forge(wish: Wish): Certificate {
    return new Authority(this.#name).issue(wish);
  }

  #signed(
    subject: string,
    key: KeyObject,
    extensions: readonly Buffer[],
    { from, until }: Omit<Wish, 'names'>,
  ): string {
    const algorithm = sequence(identifier('2a8648ce3d040302'));
    const now = Date.now();
    const body = sequence(
      der(0xa0, integer(Buffer.from([2]))),
      integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
      algorithm,
      commonName(this.#name),
      sequence(time(from ?? new Date(now - dayMs)), time(until ?? new Date(now + 30 * dayMs))),
      commonName(subject),
      key.export({ type: 'spki', format: 'der' }),
      der(0xa3, sequence(...extensions)),
    );
    const signature = sign('sha256', body, createPrivateKey(this.#key.export(pkcs8)));
    return pem(sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature]))));
  }
}

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes);
}

function identifier(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function commonName(name: string): Buffer {
  const value = der(0x0c, Buffer.from(name));
  return sequence(der(0x31, sequence(identifier('550403'), value)));
}

function extension(hex: string, value: Buffer, critical = false): Buffer {
  const mark = critical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(identifier(hex), ...mark, der(0x04, value));
}

function time(date: Date): Buffer {
  const text = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(0x18, Buffer.from(text));
}
