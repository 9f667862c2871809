// Cursors, histories, coalescing and paths, whatever comes.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { isWithin } from '../../packages/contract/guest/messages.ts';
import { limits } from '../../packages/contract/limits.ts';
import { cleanTree } from '../../packages/contract/tree-path.ts';
import { coalesced, Pending } from '../../packages/guest/watch/pending.ts';
import { countOf, cursorAt } from '../../packages/host/events/cursor.ts';
import { History, type Source } from '../../packages/host/events/history.ts';
import { type Entry, Ring } from '../../packages/host/events/ring.ts';

const epoch = fc.stringMatching(/^[0-9a-f]{16}$/);
const count = fc.nat({ max: 2 ** 40 });

test('wire-guest 11: a cursor is read back to its count, by its own epoch alone', () => {
  fc.assert(
    fc.property(epoch, epoch, count, (mine, other, at) => {
      assert.equal(countOf(mine, cursorAt(mine, at)), at);
      if (other !== mine) assert.equal(countOf(mine, cursorAt(other, at)), undefined);
    }),
  );
  fc.assert(
    fc.property(epoch, fc.string({ maxLength: 60 }), (mine, text) => {
      const read = countOf(mine, text);
      assert.ok(read === undefined || cursorAt(mine, read) === text);
    }),
  );
});

const sources = fc.array(fc.constantFrom<Source>('daemon', 'guest'), { maxLength: 60 });

test('a history gives everything after any position, in order, and the host’s own apart', () => {
  fc.assert(
    fc.property(sources, fc.nat({ max: 60 }), (all, from) => {
      const history = new History();
      all.forEach((source, i) => history.append(source, (seq) => `${i}:${seq}:${source}`));
      const texts = all.map((source, i) => `${i}:${i}:${source}`);
      const taken = (entries: Iterable<Entry>) => Array.from(entries, ({ text }) => text);
      assert.deepEqual(taken(history.from(from)), texts.slice(from));
      const own = texts.slice(from).filter((text) => text.endsWith('daemon'));
      assert.deepEqual(taken(history.daemonsFrom(from)), own);
      assert.equal(history.head, all.length);
      assert.equal(history.oldest, 0);
      assert.equal(history.position(history.cursor(all.length)), all.length);
      assert.equal(history.position(history.cursor(all.length + 1)), undefined);
    }),
  );
});

test('a ring keeps the newest within both bounds, and says from where nothing is missing', () => {
  const entries = fc.array(fc.record({ skip: fc.nat(3), length: fc.nat(12) }), { maxLength: 200 });
  const bounds = fc.record({ entries: fc.integer({ min: 1, max: 9 }), characters: fc.nat(40) });
  fc.assert(
    fc.property(entries, bounds, (plan, most) => {
      const ring = new Ring(most);
      const pushed: Entry[] = [];
      let seq = 0;
      for (const { skip, length } of plan) {
        seq += skip;
        pushed.push({ seq, text: 'x'.repeat(length) });
        ring.push(pushed.at(-1) as Entry);
        seq += 1;
        const kept = [...ring.from(0)];
        assert.ok(kept.length <= most.entries);
        assert.ok(kept.reduce((sum, { text }) => sum + text.length, 0) <= most.characters);
        assert.deepEqual(kept, pushed.slice(pushed.length - kept.length));
        assert.deepEqual(
          kept,
          pushed.filter((entry) => entry.seq >= ring.dropped),
        );
        assert.deepEqual(
          [...ring.from(seq - 3)],
          kept.filter((entry) => entry.seq >= seq - 3),
        );
      }
    }),
  );
});

test('whatever a guest tells, the host’s own events stay', () => {
  const history = new History();
  history.append('daemon', () => 'first');
  for (let i = 0; i < 10_000; i += 1) history.append('guest', () => 'x'.repeat(500));
  assert.equal(history.daemonsOldest, 0);
  assert.deepEqual(
    Array.from(history.daemonsFrom(0), ({ text }) => text),
    ['first'],
  );
  assert.ok(history.oldest > 7_000);
  // Neither does any of it take more memory than it may.
  const held = [...history.from(history.oldest)];
  assert.ok(held.length <= 2_048 && held.length * 500 <= 2 ** 20);
});

const kind = fc.constantFrom('created', 'modified', 'deleted');

test('Part 6.2: within a window the first of its life and the last of its death are told', () => {
  fc.assert(
    fc.property(fc.array(kind, { minLength: 1, maxLength: 12 }), (kinds) => {
      const told = kinds.reduce<ReturnType<typeof coalesced> | undefined>(coalesced, undefined);
      // What came or went last decides; only what was but written is modified.
      assert.equal(told, kinds.findLast((each) => each !== 'modified') ?? 'modified');
    }),
  );
});

test('Part 6.2: what is told of a window leaves the same as all that happened in it', () => {
  const paths = ['/a', '/a/b', '/a/b/c', '/a/d', '/e'];
  const steps = fc.tuple(fc.constantFrom(...paths), fc.constantFrom('make', 'folder', 'drop'));
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 30 }), (all) => {
      const before = new Set(['/a', '/a/b', '/a/b/c', '/a/d']);
      const there = new Map([...before].map((path) => [path, path !== '/a/b/c']));
      const pending = new Pending();
      for (const [path, step] of all) {
        const above = path.slice(0, path.lastIndexOf('/'));
        if (step === 'drop' && there.has(path)) {
          // As when it is moved out of the tree: what is in it is not told.
          pending.add(path, 'deleted', there.get(path) === true);
          for (const each of there.keys())
            if (isWithin(path, each) || each === path) there.delete(each);
        } else if (
          step !== 'drop' &&
          !there.has(path) &&
          (above === '' || there.get(above) === true)
        ) {
          there.set(path, step === 'folder');
          pending.add(path, 'created', step === 'folder');
        }
      }
      for (const news of pending.take()) {
        assert.ok('path' in news);
        if (news.kind !== 'deleted') before.add(news.path);
        else
          for (const each of before)
            if (isWithin(news.path, each) || each === news.path) before.delete(each);
      }
      assert.deepEqual([...before].toSorted(), [...there.keys()].toSorted());
    }),
  );
});

test('pending changes are one for each path, but for a directory that went; or one flood', () => {
  const change = fc.tuple(fc.constantFrom('/a', '/a/b', '/c'), kind, fc.boolean());
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (all) => {
      const pending = new Pending();
      for (const each of all) pending.add(...each);
      const told = pending.take() as { path: string; kind: string; dir: boolean }[];
      const again = ({ path, kind: of }: (typeof told)[0], i: number) =>
        of === 'deleted' && told[i + 1]?.path === path;
      for (const gone of told.filter(again)) assert.equal(gone.dir, true);
      const news = told.filter((each, i) => !again(each, i));
      assert.deepEqual(
        news.map(({ path }) => path).toSorted(),
        [...new Set(all.map(([path]) => path))].toSorted(),
      );
      for (const { path, kind: last, dir } of news) {
        const mine = all.filter(([of]) => of === path);
        assert.ok(dir === mine.at(-1)?.[2] || last === 'deleted');
        assert.equal(last, mine.map(([, each]) => each).reduce(coalesced));
      }
      assert.ok(pending.empty);
    }),
  );
  const pending = new Pending();
  for (let i = 0; i < 100_000; i += 1) pending.add(`/path/${i}`, 'created', false);
  assert.deepEqual(pending.take(), [{ lost: 'flood' }]);
  pending.add('/long'.repeat(100_000), 'created', false);
  assert.deepEqual(pending.take(), [{ lost: 'flood' }]);
  assert.deepEqual(pending.take(), []);
});

const segment = fc.oneof(
  fc.constantFrom('', '.', '..', '...', 'a', 'ä', '日本', ' '),
  fc.string({ maxLength: 8, unit: 'grapheme' }),
  // eslint-disable-next-line no-control-regex -- what must be refused
  fc.constantFrom('\u0000', '\u0007', '\u007f', '\u0085', '\ud800'),
);

test('wire-guest 11: a clean tree is absolute, short, printable, canonical and not the root', () => {
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 12 }), fc.constantFrom('/', ''), (parts, first) => {
      const path = first + parts.join('/');
      const tree = cleanTree(path);
      if (tree === undefined) return;
      assert.ok(path.startsWith('/') && path.isWellFormed());
      assert.ok(Buffer.byteLength(tree) <= limits.treePath);
      assert.match(tree, /^(\/[^/\p{Cc}]+)+$/u);
      assert.ok(!tree.split('/').some((each) => each === '.' || each === '..'));
      assert.equal(cleanTree(tree), tree);
      const longer = `${tree}//.//`;
      if (Buffer.byteLength(longer) <= limits.treePath) assert.equal(cleanTree(longer), tree);
    }),
  );
  const cases: [string, string | undefined][] = [
    ['/home/user/', '/home/user'],
    ['//home/./user/../other//', '/home/other'],
    ['/../../home', '/home'],
    ['/', undefined],
    ['/home/..', undefined],
    ['/./..//', undefined],
    ['', undefined],
    ['home', undefined],
    ['~/x', undefined],
    ['/a\u0000b', undefined],
    ['/a\nb', undefined],
    ['/\ud800', undefined],
    [`/${'a'.repeat(255)}`, `/${'a'.repeat(255)}`],
    [`/${'a'.repeat(256)}`, undefined],
    [`/${'ä'.repeat(128)}`, undefined],
  ];
  for (const [path, tree] of cases) assert.equal(cleanTree(path), tree, path);
});

test('a change is within its tree, or it is none of its', () => {
  const cases: [string, boolean][] = [
    ['/a/b', true],
    ['/a/b/c', true],
    ['/a', false],
    ['/a/', false],
    ['/ab', false],
    ['/b/a', false],
    ['/a/../b', false],
    ['/a/./b', false],
    ['/a//b', false],
    ['/a/b\nc', false],
    ['a/b', false],
  ];
  for (const [path, within] of cases) assert.equal(isWithin('/a', path), within, path);
});
