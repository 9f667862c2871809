import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { stringify } from 'yaml';
import { z } from 'zod';
import { templateSchema } from '../../packages/contract/template-schema.ts';
import { readDocument } from '../../packages/server/documents/read.ts';
import {
  badChanges,
  changed,
  gone,
  goodChanges,
  type Json,
  leastDocument,
  wholeDocument,
} from './template-corpus.ts';

const read = (text: string) => readDocument(Buffer.from(text));
const problemsOf = (text: string): readonly string[] => {
  const reading = read(text);
  return reading.valid ? [] : reading.problems;
};
const withoutLines = (problems: readonly string[]) =>
  problems.map((problem) => problem.replace(/ \(line \d+\)/, ''));

/** The same document as people and programs write it. */
function written(document: Json): Record<string, string> {
  return {
    json: JSON.stringify(document),
    'json with tabs': JSON.stringify(document, null, '\t'),
    yaml: stringify(document, JSON.stringify(document).includes('\\ud800') ? quoting : {}),
  };
}
const quoting = { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' } as const;

/** The published schema as a judge of its own. */
const schema = z.fromJSONSchema(templateSchema('https://example.com/schema'));

suite('template documents', () => {
  test('wire-account 1: good documents pass in every spelling, with one canonical form', () => {
    const documents = [
      leastDocument(),
      ...[['spec.os', 'linux'] as const, ...goodChanges].map((change) =>
        changed(wholeDocument(), change),
      ),
    ];
    for (const document of documents) {
      const canonicals = Object.entries(written(document)).map(([syntax, text]) => {
        const reading = read(text);
        assert.ok(reading.valid, `${syntax}: ${text}\n${JSON.stringify(reading)}`);
        assert.deepEqual(reading.document, document);
        return reading.canonical;
      });
      assert.equal(new Set(canonicals).size, 1);
      assert.deepEqual(JSON.parse(canonicals[0] as string), document);
      assert.ok(schema.safeParse(document).success, JSON.stringify(document));
    }
  });

  test('wire-account 1: each bad document is told its problem, by its path, in every spelling', () => {
    for (const [path, value, problem, at = path] of badChanges) {
      const document = changed(wholeDocument(), [path, value]);
      for (const [syntax, text] of Object.entries(written(document))) {
        assert.deepEqual(withoutLines(problemsOf(text)), [`${at} ${problem}`], `${syntax} ${path}`);
      }
    }
    assert.ok(badChanges.length > 200);
  });

  test('wire-account 1: the JSON Schema refuses what it can say', () => {
    // Whether there is something to build, what is there once, and what no file can hold.
    const beyond = /because|exactly one|earlier secret|NUL|Unicode/;
    for (const [path, value, problem] of badChanges) {
      if (beyond.test(problem)) continue;
      const document = changed(wholeDocument(), [path, value]);
      assert.ok(!schema.safeParse(document).success, `${path} ${problem}`);
    }
  });

  test('Part 4 Templates: every problem is told at once, with the lines of the text', () => {
    const text = `apiVersion: cubicle/v2
kind: Template
metadata: {namespace: acc-0123456789ab, name: research, version: 1.0}
spec:
  cpu: 1e999
  label: 7
  color: red
  color: blue
  build:
    - apt: git

    - file: {path: relative, mode: 0644}
    - frob: |
        text
  __proto__: 7
`;
    assert.deepEqual([...problemsOf(text)].toSorted(), [
      'apiVersion (line 1) must be `cubicle/v1`',
      'metadata.version (line 3) must be a string; put it in quotes',
      'spec.__proto__ (line 15) is a key that templates do not have',
      'spec.build.0.apt (line 10) must be a list',
      'spec.build.1.file (line 12) must have exactly one of content, content_b64',
      'spec.build.1.file.mode (line 12) must be a string; put it in quotes',
      'spec.build.1.file.path (line 12) must be an absolute path without `.`, `..`, empty parts or a slash at the end',
      'spec.build.2 (line 13) must have exactly one of apt, run, file, mkdir, env',
      'spec.build.2.frob (line 13) is not a field that templates have here',
      'spec.color (line 7) is not a field that templates have here',
      'spec.color (line 8) is there twice',
      'spec.cpu (line 5) must be a finite number',
      'spec.from is required because there is something to build',
      'spec.label (line 6) must be a string; put it in quotes',
      'spec.os is required',
    ]);
  });

  test('wire-account 1: a reference is told even of an invalid document, where it has one', () => {
    const refOf = (document: Json) => read(JSON.stringify(document)).ref;
    assert.equal(refOf(wholeDocument()), 'acc-0123456789ab/research@1.2.3');
    assert.equal(
      refOf(changed(wholeDocument(), ['spec.os', 'x'])),
      'acc-0123456789ab/research@1.2.3',
    );
    for (const change of [
      ['metadata.version', '1.0'],
      ['metadata.version', 1],
      ['metadata', null],
      ['metadata', gone],
      ['metadata.name', 'x'.repeat(5000)],
    ] as const) {
      assert.equal(refOf(changed(wholeDocument(), change)), undefined);
    }
  });

  test('wire-account 1: digests are of the canonical form; the build’s of what decides the image', () => {
    const digests = (document: Json) => {
      const reading = read(JSON.stringify(document));
      assert.ok(reading.valid);
      const hex = createHash('sha256').update(reading.canonical, 'utf8').digest('hex');
      assert.equal(reading.docDigest, `sha256:${hex}`);
      assert.ok((reading.buildDigest === undefined) !== (reading.buildDigestNeeds === undefined));
      return reading;
    };
    const plain = digests(leastDocument());
    assert.match(plain.buildDigest ?? '', /^sha256:[0-9a-f]{64}$/);
    for (const change of [
      ['spec.label', 'Another'],
      ['spec.icon', 'x'],
      ['metadata.version', '9.9.9'],
      ['metadata.name', 'another'],
      ['spec.cpu', 9],
      ['spec.ram_mb', 999],
      ['spec.disk_gb', 99],
      ['spec.browser_proxy', { server: 'http://a:1' }],
    ] as const) {
      const other = digests(changed(leastDocument(), change));
      assert.notEqual(other.docDigest, plain.docDigest, change[0]);
      assert.equal(other.buildDigest, plain.buildDigest, change[0]);
    }
    for (const change of [
      ['spec.desktop', 'wayland'],
      ['spec.family', 'golden-x'],
      ['spec.secrets', [{ id: 'csec-0123456789abcdef', as: 'A' }]],
    ] as const) {
      assert.notEqual(digests(changed(leastDocument(), change)).buildDigest, plain.buildDigest);
    }
    assert.match(digests(wholeDocument()).buildDigestNeeds ?? '', /system\/base@1\.0\.0/);
    // Written down once, so that a change of what is hashed shows.
    assert.equal(
      plain.canonical,
      '{"apiVersion":"cubicle/v1","kind":"Template","metadata":{"name":"least","namespace":"acc-0123456789ab","version":"0.0.0"},"spec":{"os":"linux"}}',
    );
  });

  test('the example in the documentation is a good document', () => {
    const page = readFileSync(new URL('../../docs/templates.md', import.meta.url), 'utf8');
    const [, example = ''] = /```yaml\n(.*?)```/s.exec(page) ?? [];
    assert.deepEqual(problemsOf(example), []);
    assert.equal(read(example).ref, 'acc-0123456789ab/research@1.0.0');
  });

  test('wire-account 1: order, comments, spaces and quotes leave the digest alone', () => {
    const texts = [
      JSON.stringify(leastDocument()),
      'spec: {os: linux}\nmetadata: {version: 0.0.0, name: least, namespace: acc-0123456789ab}\nkind: Template\napiVersion: cubicle/v1\n',
      '# a comment\n---\n"apiVersion": "cubicle/v1" # another\nkind:   Template\nmetadata:\n    name: \'least\'\n    namespace: >-\n      acc-0123456789ab\n    version: "0.0.0"\nspec:\n  os: "\\x6cinux"\n...\n',
      `\r\n${JSON.stringify(leastDocument(), null, 2).replaceAll('\n', '\r\n')}\r\n`,
    ];
    const digests = texts.map((text) => {
      const reading = read(text);
      assert.ok(reading.valid, JSON.stringify(reading));
      return reading.docDigest;
    });
    assert.equal(new Set(digests).size, 1);
  });
});
