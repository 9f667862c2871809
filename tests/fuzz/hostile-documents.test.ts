import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { Refusal } from '../../packages/contract/errors.ts';
import { limits } from '../../packages/contract/limits.ts';
import { readDocument } from '../../packages/server/documents/read.ts';
import { DocumentReader } from '../../packages/server/documents/reader.ts';
import { changed, leastDocument, wholeDocument } from '../contract/template-corpus.ts';

const most = limits.templateBody;
const filled = (part: string) => part.repeat(Math.floor(most / part.length));
const lines = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('\n');
const least = JSON.stringify(leastDocument());

/** What is sent, and what the first problem must be. Most are as large as a body can be. */
const attacks: Record<string, readonly [text: string | Uint8Array, problem: RegExp]> = {
  'aliases of aliases': [
    `a: &a [x, x]\n${lines(30, (n) => `b${n}: &b${n} [*${n ? `b${n - 1}` : 'a'}, *${n ? `b${n - 1}` : 'a'}]`)}`,
    /^document \(line 1\) uses an anchor/,
  ],
  'an alias alone': ['a: *a', /^document \(line 1\) uses an alias/],
  'an alias in flow': ['{"a": [*a]}', /^document \(line 1\) uses an alias/],
  'thousands of anchors': [lines(30_000, (n) => `k${n}: &a${n} 1`), /uses an anchor/],
  'an anchor of a megabyte': [filled('&'), /uses an anchor/],
  'an alias of a megabyte': [filled('*'), /uses an alias/],
  'a tag of a megabyte': [filled('!'), /uses a tag/],
  'a known tag': ['a: !!binary aGVsbG8=', /uses a tag/],
  'a tag that makes code elsewhere': ['a: !!js/function x', /uses a tag/],
  'a local tag': ['!template {a: 1}', /uses a tag/],
  'merge keys': ['<<: {a: 1}', /^"<<" \(line 1\) is a key/],
  'a directive': [`%YAML 1.1\n---\n${least}`, /has a directive/],
  'directives without end': [filled('%A b\n'), /has a directive/],
  'a second document': [`${least}\n---\n${least}`, /^document \(line 2\) has a second document/],
  'documents without end': [filled('---\n'), /more than 20000|second document/],
  'ends without end': [filled('...\n'), /more than 20000|is empty|second document/],
  'lists in lists': [filled('['), /nests too deep/],
  'maps in maps': [filled('{a: '), /nests too deep/],
  'JSON in JSON': [filled('{"a":'), /nests too deep/],
  'closed lists in lists': [`${'['.repeat(most / 2)}${']'.repeat(most / 2)}`, /nests too deep/],
  'lists in lists on one line': [filled('- '), /nests too deep/],
  'keys of keys': [filled('? '), /uses `\?`/],
  'indented without end': [lines(1_000, (n) => `${' '.repeat(n)}a:`), /nests too deep/],
  'lists indented without end': [lines(1_000, (n) => `${' '.repeat(n)}-`), /nests too deep/],
  'keys without end': [lines(90_000, (n) => `k${n}: 1`), /more than 20000 marks/],
  'commas without end': [`a: [${filled('1,')}`, /more than 20000 marks/],
  'nothing but commas': [`[${filled(',')}`, /more than 20000 marks|cannot be read/],
  'empty lines without end': [`a: 1${filled('\n')}`, /more than 20000 marks/],
  'comments without end': [filled('#\n'), /more than 20000 marks/],
  'one key a thousand times': [lines(1_000, () => 'a: 1'), /^a \(line 2\) is there twice/],
  'one key twice in JSON': [
    '{"spec":{"os":"x","os":"linux"}}',
    /^spec\.os \(line 1\) is there twice/,
  ],
  'one key twice by escapes': ['{"kind":"x","k\\u0069nd":"y"}', /^kind \(line 1\) is there twice/],
  'a list as a key': ['[a]: 1', /^document has a key that is no string/],
  'a number as a key': ['1: x', /^document \(line 1\) has a key that is no string/],
  'nothing as a key': [': x', /^document \(line 1\) has a key that is no string|has a key/],
  'the prototype': ['{"__proto__": {"spec": {"os": "linux"}}}', /^__proto__ \(line 1\) is a key/],
  'a key of a megabyte': [`"${filled('k').slice(0, -10)}": 1`, /cannot be read|is not a field/],
  'NUL bytes': [filled('\0'), /^document/],
  'a NUL byte in text': ['label: "a\0b"', /NUL|cannot be read/],
  'a NUL by escape': ['label: "a\\0b"', /^label \(line 1\) must have no NUL/],
  'a NUL in a key': [
    '"a\\0b": 1',
    /^document must have no NUL|^document \(line 1\) must have no NUL/,
  ],
  'half of a character by escape': ['{"label":"\\ud800"}', /^label \(line 1\) must be well-formed/],
  'a byte order mark': [`\ufeff${least}`, /^document begins with a byte order mark/],
  'UTF-16': [Buffer.from(`\ufeff${least}`, 'utf16le'), /^document is not UTF-8/],
  'bytes that are no UTF-8': [Buffer.alloc(most, 0xff), /^document is not UTF-8/],
  'an overlong slash': [Buffer.from([0x61, 0x3a, 0x20, 0xc0, 0xaf]), /^document is not UTF-8/],
  'half of a character': [Buffer.from([0xf0, 0x9f, 0x98]), /^document is not UTF-8/],
  'an encoded surrogate': [Buffer.from([0xed, 0xa0, 0x80]), /^document is not UTF-8/],
  'a number of a megabyte': [filled('9'), /^document must be/],
  'a key’s number of a megabyte': [`spec: {cpu: 1${filled('0')}}`, /^apiVersion is required/],
  'text of a megabyte': [filled('x'), /^document must be a map/],
  'text of a megabyte in lines': [`a: x\n${filled('  x\n')}`, /^apiVersion is required/],
  'folded text of a megabyte': [`a: >\n${filled('  x\n')}`, /^apiVersion is required/],
  'quotes of a megabyte': [`a: "${filled('\\n').slice(8)}"`, /^apiVersion is required/],
  'quotes that never end': [`a: "${filled('x')}`, /cannot be read/],
  'escapes that are none': [`a: "${filled('\\q')}"`, /cannot be read/],
  'spaces of a megabyte': [`a:${filled(' ')}1`, /^apiVersion is required/],
  'tabs of a megabyte': [filled('\t'), /^document/],
  'returns of a megabyte': [filled('\r'), /^document/],
  'colons of a megabyte': [filled(':'), /^document/],
  'indicators of every kind': [filled('-?:,[]{}#&*!|>\'"%@`'), /^document/],
  'block headers without end': [lines(9_000, () => 'a: |9'), /^document|^a /],
  nothing: ['# only a comment', /^document is empty|^document must be a map/],
  'a word': ['template', /^document must be a map/],
  'a list': [`[${least}]`, /^document must be a map/],
};

const marksAndWords = 'a1 \n:[]{},"\'|>#\t\r%@`~\\=\u2028é'
  .split('')
  .concat([': ', '- ', 'null', '0x1', '.inf', '\\u', '<<']);

const bytesOf = (text: string | Uint8Array) =>
  typeof text === 'string' ? Buffer.from(text) : text;

suite('hostile documents', { timeout: 600_000 }, () => {
  for (const [name, [text, problem]] of Object.entries(attacks)) {
    test(`${name}: refused`, () => {
      const reading = readDocument(bytesOf(text));
      assert.ok(!reading.valid);
      assert.match(
        reading.problems[0] ?? '',
        problem,
        JSON.stringify(reading.problems.slice(0, 3)),
      );
      for (const told of reading.problems)
        assert.ok(told.length < 500, 'no problem repeats the text');
    });
  }

  test('problems without end are told up to a number', () => {
    const secrets = Array.from({ length: 2_000 }, () => 7);
    const reading = readDocument(
      Buffer.from(JSON.stringify(changed(wholeDocument(), ['spec.secrets', secrets]))),
    );
    assert.ok(!reading.valid);
    assert.equal(reading.problems.length, limits.templateProblems + 1);
    assert.equal(reading.problems.at(-1), 'document has 1000 more problems');
  });

  test('whatever the bytes, a reading comes of them, and a good one is its own canonical form', () => {
    const marks = fc.constantFrom(...marksAndWords);
    const texts = fc.oneof(
      fc.array(marks, { maxLength: 60 }).map((parts) => parts.join('')),
      fc.json(),
      fc
        .tuple(fc.nat(least.length), marks)
        .map(([n, mark]) => least.slice(0, n) + mark + least.slice(n)),
      fc
        .tuple(fc.nat(least.length), fc.nat(9))
        .map(([n, cut]) => least.slice(0, n) + least.slice(n + cut)),
    );
    fc.assert(
      fc.property(fc.oneof(texts, fc.string({ unit: 'binary' })), (text) => {
        const reading = readDocument(Buffer.from(text));
        if (!reading.valid) {
          assert.ok(reading.problems.length > 0);
          return;
        }
        const again = readDocument(Buffer.from(reading.canonical));
        assert.ok(again.valid);
        assert.equal(again.docDigest, reading.docDigest);
      }),
      { numRuns: 1_500 },
    );
  });

  test('any JSON that is a template reads as JSON.parse reads it', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('A', 'B_1', '_c'), fc.string({ maxLength: 40 })),
        (env) => {
          const document = changed(wholeDocument(), ['spec.env', env]);
          const text = JSON.stringify(document);
          const reading = readDocument(Buffer.from(text));
          const possible = Object.values(env).every((value) => !value.includes('\0'));
          assert.equal(reading.valid, possible);
          if (reading.valid) assert.deepEqual(reading.document, JSON.parse(text));
        },
      ),
      { numRuns: 300 },
    );
  });
});

suite('the reader of documents', { timeout: 120_000 }, () => {
  const large = changed(wholeDocument(), ['spec.build.2.file.content', 'x\n'.repeat(400_000)]);

  test('reads a large document elsewhere, with the same answer, while others are served', async (t) => {
    const reader = new DocumentReader();
    t.after(() => reader.close());
    const bytes = Buffer.from(JSON.stringify(large));
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 1);
    const reading = await reader.read(bytes);
    clearInterval(counting);
    assert.deepEqual(reading, readDocument(bytes));
    assert.ok(turns > 2, 'the event loop went on turning');
    const second = await reader.read(Buffer.from(filled('[')));
    assert.ok(!second.valid);
  });

  test('has a queue of a length, and ends with its owner', async () => {
    const reader = new DocumentReader();
    const bytes = Buffer.from(JSON.stringify(large));
    const asked = Array.from({ length: 40 }, () => reader.read(bytes));
    const settled = await Promise.allSettled(asked);
    const refused = settled.filter(({ status }) => status === 'rejected');
    assert.equal(refused.length, 8);
    for (const one of refused) {
      assert.ok(one.status === 'rejected' && one.reason instanceof Refusal);
      assert.equal(one.reason.error, 'documents_busy');
    }
    assert.ok((await reader.read(bytes)).valid, 'and goes on afterwards');
    await reader.close();
  });
});
