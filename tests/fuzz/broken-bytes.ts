// Bytes that are no request, or not one whose end anybody could agree on. Each ends its connection.

import type { Random } from './random.ts';

export interface Broken {
  readonly bytes: Buffer;
  readonly kind: string;
  /** No Host header: the one refusal that Node answers by itself. */
  readonly hostless?: true;
}

/** `head` is a request line and headers without the final empty line; `smuggled` must never be obeyed. */
export function brokenBytes(random: Random, head: string, smuggled: Buffer): Broken {
  const [kind, make] = random.pick(kinds);
  const text = make(random, head);
  const bytes = Buffer.from(text, 'latin1');
  return {
    kind,
    bytes: /framing/.test(kind) ? Buffer.concat([bytes, smuggled]) : bytes,
    ...(kind === 'no host' && { hostless: true }),
  };
}

const lengths = [
  '-1',
  '+5',
  '5, 5',
  '5, 6',
  '0x10',
  '1e3',
  '5 5',
  '5a',
  '',
  '99999999999999999999999',
  '18446744073709551617',
  '\u00b2',
];

const sizes = ['-1', 'zz', '0x5', 'fffffffffffffffff', '5 5', '', ' 5', '+5', '\u00b2', '5\n', 'g'];

const kinds: readonly (readonly [kind: string, make: (random: Random, head: string) => string])[] =
  [
    ['noise', (random) => random.bytes(random.between(1, 300)).toString('latin1')],
    ['a TLS hello', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['an HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    [
      'a word',
      (random) => random.pick(['hello', 'QUIT\r\n\r\n', 'GET\r\n\r\n', '\r\n\r\n\r\n', '\0']),
    ],
    ['an unknown method', (_, head) => `${head.replace(/^\S+/, 'FROBNICATE')}\r\n\r\n`],
    ['a lower-case method', (_, head) => `${head.replace(/^\S+/, 'get')}\r\n\r\n`],
    ['a tunnel', () => 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'],
    ['no version', (_, head) => `${head.replace(/ HTTP\/1\.1/, '')}\r\n\r\n`],
    ['an odd version', (random, head) => `${oddVersion(random, head)}\r\n\r\n`],
    ['two spaces', (_, head) => `${head.replace(' ', '  ')}\r\n\r\n`],
    ['a space in the target', (_, head) => `${head.replace(' HTTP', ' x HTTP')}\r\n\r\n`],
    ['a target that is none', (random, head) => `${oddTargetForm(random, head)}\r\n\r\n`],
    ['high bytes in the target', (_, head) => `${head.replace(' HTTP', '\xe9\xff HTTP')}\r\n\r\n`],
    ['a control in the target', (random, head) => `${controlInTarget(random, head)}\r\n\r\n`],
    ['bare line feeds', (_, head) => `${head.replaceAll('\r\n', '\n')}\n\n`],
    ['a bare carriage return', (_, head) => `${head}\r\nX: a\rY: b\r\n\r\n`],
    ['a header without a colon', (_, head) => `${head}\r\nnonsense\r\n\r\n`],
    ['a space before the colon', (_, head) => `${head}\r\nX-Odd : 1\r\n\r\n`],
    ['a folded header', (_, head) => `${head}\r\nX-Odd: 1\r\n folded\r\n\r\n`],
    ['a NUL in a header', (_, head) => `${head}\r\nX-Odd: a\0b\r\n\r\n`],
    ['a control in a header’s name', (_, head) => `${head}\r\nX-\x01: 1\r\n\r\n`],
    ['an empty header name', (_, head) => `${head}\r\n: 1\r\n\r\n`],
    ['no host', (_, head) => `${head.replaceAll(/\r\nHost:[^\r]*/g, '')}\r\n\r\n`],
    [
      'too long a header',
      (random, head) => `${head}\r\nX-Long: ${'v'.repeat(random.between(16_500, 60_000))}\r\n\r\n`,
    ],
    [
      'too many headers',
      (random, head) => `${head}\r\n${'X-M: 1\r\n'.repeat(random.between(2_100, 6_000))}\r\n`,
    ],
    [
      'too long a target',
      (_, head) => `${head.replace(' HTTP', `${'y'.repeat(20_000)} HTTP`)}\r\n\r\n`,
    ],
    [
      'a bad length',
      (random, head) => `${head}\r\nContent-Length: ${random.pick(lengths)}\r\n\r\n12345`,
    ],
    [
      'framing: two lengths',
      (_, head) => `${head}\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n12345`,
    ],
    [
      'framing: a length and chunks',
      (_, head) => `${head}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'framing: chunks and a length',
      (_, head) => `${head}\r\nTransfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n`,
    ],
    [
      'framing: chunked twice',
      (_, head) => `${head}\r\nTransfer-Encoding: chunked, chunked, identity\r\n\r\n0\r\n\r\n`,
    ],
    [
      'framing: almost chunked',
      (random, head) =>
        `${head}\r\nTransfer-Encoding: ${random.pick(['xchunked', 'chunke', 'identity', '"chunked"'])}\r\n\r\n0\r\n\r\n`,
    ],
    [
      'framing: a bad chunk size',
      (random, head) =>
        `${head}\r\nTransfer-Encoding: chunked\r\n\r\n${random.pick(sizes)}\r\n12345\r\n0\r\n\r\n`,
    ],
    [
      'framing: a chunk longer than its size',
      (_, head) => `${head}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12345\r\n0\r\n\r\n`,
    ],
    [
      'too long a chunk extension',
      (_, head) =>
        `${head}\r\nTransfer-Encoding: chunked\r\n\r\n5;${'e'.repeat(20_000)}\r\n12345\r\n0\r\n\r\n`,
    ],
    [
      'too long a trailer',
      (_, head) =>
        `${head}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trail: ${'t'.repeat(20_000)}\r\n\r\n`,
    ],
  ];

function oddVersion(random: Random, head: string): string {
  const version = random.pick(['HTTP/9.9', 'HTTP/2', 'HTTP/1.2', 'http/1.1', 'HTTP/1.', 'ICY/1.1']);
  return head.replace('HTTP/1.1', version);
}

function controlInTarget(random: Random, head: string): string {
  return head.replace(' HTTP', `/${random.pick(['\t', '\f', '\x7f', '\0'])}/ HTTP`);
}

function oddTargetForm(random: Random, head: string): string {
  const target = random.pick(['', 'api/v1', '?x', '#', '://', 'ftp://x/y', '\\', 'javascript:1']);
  return head.replace(/ \S+ /, ` ${target} `);
}
