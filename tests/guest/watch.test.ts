// Watched trees of files: the shipped agent on real folders (Part 6.2, `file.changed`).

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import {
  appendFile,
  chmod,
  mkdir,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { until } from '../support/until.ts';
import { armed, changes, Listening, type Reader } from './listening.ts';

const marks = new WeakMap<Reader, number>();
let mostMarks = 0;

/** What is told after the last time, up to a file of its own that says it is all. */
async function settled(reader: Reader, tree: string): Promise<string[]> {
  const from = marks.get(reader) ?? 0;
  const mark = join(tree, `mark-${(mostMarks += 1)}`);
  await writeFile(mark, '');
  await until('everything is told', () => changes(reader).includes(`created ${mark}`));
  const all = changes(reader);
  marks.set(reader, all.length);
  return all.slice(from).filter((change) => !change.includes('/mark-'));
}

test('Part 6.2: created, written, removed and renamed things are told, what was there is not', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  const at = (...names: string[]) => join(tree, ...names);
  await writeFile(at('old'), 'old');
  await mkdir(at('folder'));
  await writeFile(at('folder', 'deep'), 'old');
  const reader = await on.watching(tree);
  assert.deepEqual(changes(reader), []);
  // A slow machine may take two windows for what fits one, so twice the same is as good as once.
  const told = async () => [...new Set(await settled(reader, tree))];

  await appendFile(at('old'), 'more');
  assert.deepEqual(await told(), [`modified ${at('old')}`]);
  await writeFile(at('folder', 'deep'), 'new');
  assert.deepEqual(await told(), [`modified ${at('folder', 'deep')}`]);
  await writeFile(at('new'), 'a');
  assert.equal((await told())[0], `created ${at('new')}`);
  await appendFile(at('old'), 'x');
  await unlink(at('old'));
  assert.equal((await told()).at(-1), `deleted ${at('old')}`);
  await rename(at('new'), at('newer'));
  assert.deepEqual(await told(), [`deleted ${at('new')}`, `created ${at('newer')}`]);
  await mkdir(at('made'));
  assert.deepEqual(await told(), [`created ${at('made')}/`]);
  await chmod(at('folder'), 0o700);
  assert.deepEqual(await told(), [`modified ${at('folder')}/`]);
  await rmdir(at('made'));
  assert.deepEqual(await told(), [`deleted ${at('made')}/`]);
  const frame = reader.events.find(({ type, data }) => type === 'file.changed' && data.dir);
  assert.deepEqual(Object.keys(frame.data), ['watch', 'path', 'kind', 'dir']);
  assert.deepEqual([frame.source, frame.data.watch], ['guest', tree]);
});

test('Part 6.2: directories that appear later are watched, and what came with them is told', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  await mkdir(on.rig.at('other', 'a', 'b'), { recursive: true });
  await writeFile(on.rig.at('other', 'a', 'b', 'file'), '');
  const reader = await on.watching(tree);
  await rename(on.rig.at('other', 'a'), join(tree, 'a'));
  await until('what came is told', () => changes(reader).includes(`created ${tree}/a/b/file`));
  assert.deepEqual(changes(reader).toSorted(), [
    `created ${tree}/a/`,
    `created ${tree}/a/b/`,
    `created ${tree}/a/b/file`,
  ]);
  await writeFile(join(tree, 'a', 'b', 'second'), '');
  await until('it is watched', () => changes(reader).includes(`created ${tree}/a/b/second`));
  // Under its new name it is told by that, and nothing of it by the old one.
  await rename(join(tree, 'a'), join(tree, 'z'));
  await writeFile(join(tree, 'z', 'b', 'third'), '');
  await until('it is watched again', () => changes(reader).includes(`created ${tree}/z/b/third`));
  assert.ok(changes(reader).includes(`deleted ${tree}/a/`));
  // Out of the tree it is nothing of ours any more.
  await rename(join(tree, 'z'), on.rig.at('other', 'z'));
  await writeFile(on.rig.at('other', 'z', 'fourth'), '');
  const told = await settled(reader, tree);
  assert.ok(told.includes(`deleted ${tree}/z/`));
  assert.ok(!told.some((change) => change.includes('fourth')));
  // A directory replaced by another of its name is watched as well.
  for (let i = 0; i < 20; i += 1) {
    await rm(join(tree, 'again'), { recursive: true, force: true });
    await mkdir(join(tree, 'again'));
  }
  await writeFile(join(tree, 'again', 'in'), '');
  await until('the last one', () => changes(reader).includes(`created ${tree}/again/in`));
});

test('names like numbers, a name with a newline, a folder with the name of its folder', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  await mkdir(join(tree, 'files'));
  const numbers = Array.from({ length: 64 }, (_, i) => String(i));
  for (const name of numbers) await writeFile(join(tree, 'files', name), '');
  const reader = await on.watching(tree);
  await writeFile(join(tree, 'line\nbreak'), '');
  for (const name of numbers) await unlink(join(tree, 'files', name));
  await chmod(join(tree, 'files'), 0o700);
  await rmdir(join(tree, 'files'));
  await mkdir(join(tree, 'files'));
  for (const name of numbers) await writeFile(join(tree, 'files', name), '');
  const told = await settled(reader, tree);
  for (const name of numbers)
    assert.ok(
      told.some((c) => c.endsWith(`/files/${name}`)),
      name,
    );
  assert.ok(!told.some((change) => change.includes('break')));
  const wrong = told.filter(
    (c) => !numbers.some((n) => c.endsWith(`/files/${n}`)) && !c.endsWith('/files/'),
  );
  assert.deepEqual(wrong, []);
});

test('Part 6.2: a link is unwatchable, and what is absent is watched once it appears', async (t) => {
  const on = await Listening.of(t);
  const [target, link, later] = [
    on.rig.at('target'),
    on.rig.at('link-to'),
    on.rig.at('later', 'deep'),
  ];
  await mkdir(target);
  await symlink(target, link);
  const through = join(link, 'inner');
  await mkdir(join(target, 'inner'));
  const reader = on.open({ watches: [link, later, through, on.rig.at('run', '..', 'file')] });
  await writeFile(on.rig.at('file'), 'not a folder');
  const lost = () =>
    reader.data('file.changed').filter((data) => data.lost === 'unwatchable').length;
  await until('all four are unwatchable', () => lost() === 4);
  assert.deepEqual(
    reader.hello.watching.map((each: { armed: boolean }) => each.armed),
    [false, false, false, false],
  );
  await writeFile(join(target, 'unseen'), '');
  await mkdir(later, { recursive: true });
  await until('it appears', () => armed(reader, later));
  await writeFile(join(later, 'seen'), '');
  await until('it is told', () => changes(reader).length > 0);
  assert.deepEqual(changes(reader), [`created ${join(later, 'seen')}`]);
  // Gone and back: told as unwatchable, and armed again.
  await rm(on.rig.at('later'), { recursive: true });
  await until('it is gone', () => lost() === 5);
  await mkdir(later, { recursive: true });
  const arms = () => reader.data('file.changed').filter((data) => data.armed === true).length;
  await until('it is armed again', () => arms() === 2);
  // A link inside is a thing of its own: told, not followed.
  await symlink(target, join(later, 'way'));
  await until('the link is told', () => changes(reader).includes(`created ${join(later, 'way')}`));
  await writeFile(join(target, 'unseen too'), '');
  assert.ok(!(await settled(reader, later)).some((change) => change.includes('unseen')));
});

test('Part 6.2: a flood is told as one, and watching goes on', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  const reader = await on.watching(tree);
  const flooded = () => reader.data('file.changed').some((data) => data.lost === 'flood');
  execFileSync('sh', ['-c', 'seq 1 30000 | xargs touch'], {
    cwd: tree,
  });
  await until('the flood is told', flooded);
  await until('it goes on', async () => {
    await writeFile(join(tree, 'after'), String(Math.random()));
    return changes(reader).some((change) => change.endsWith('/after'));
  });
});

test('Part 6.2: too many directories are beyond the budget, for good; a narrower tree is not', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  execFileSync('sh', ['-c', 'seq -f d%g 1 4200 | xargs mkdir'], { cwd: tree });
  const reader = on.open({ watches: [tree] });
  const news = await until('it is told', () => reader.data('file.changed')[0]);
  assert.deepEqual(news, { watch: tree, lost: 'budget' });
  const narrow = await on.watching(join(tree, 'd7'));
  await writeFile(join(tree, 'd7', 'file'), '');
  await until('the narrow one tells', () => changes(narrow).length > 0);
  assert.ok(!reader.data('file.changed').some((data) => data.watch === tree && data.path));
  // A second one that fits finds the room that the first gave back.
  execFileSync('sh', ['-c', 'seq -f d%g 201 4200 | xargs rmdir'], { cwd: tree });
  reader.subscription?.end();
  await on.watching(tree);
});

test('a build-like churn: what was told agrees with what is there', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  const reader = await on.watching(tree);
  const churn = `
    for round in 1 2 3; do
      for m in a b c d e; do
        mkdir -p src/$m/deep/er; echo $round > src/$m/deep/er/x.c; echo $round > src/$m/y.c
        for o in 1 2 3 4 5 6; do echo $o > src/$m/$o.o.tmp; mv src/$m/$o.o.tmp src/$m/$o.o; done
        cat src/$m/*.o > src/$m/lib.a
      done
      mkdir -p out; mv src/a out/a$round; cp -r out/a$round src/a; rm -rf src/b; rm -f src/c/*.o
      mv src/d src/dd && rm -rf src/d src/dd
      for d in 1 2 3 4 5 6 7 8 9; do
        mkdir young$d && touch young$d/a young$d/b && chmod 700 young$d && rm young$d/a
        mv young$d aside && mkdir young$d && touch young$d/c && rm -rf aside
        chmod 755 young$d && rm young$d/c && chmod 700 young$d
      done
      for d in 1 2 3 4 5 6; do mv young$d aside && echo file > young$d && rm -rf aside; done
      rm -rf young* kept
      mkdir kept && touch kept/a && mv kept aside && mkdir kept && touch kept/b && mv aside kept$round
    done`;
  execFileSync('bash', ['-c', churn], { cwd: tree });
  const there = () =>
    readdirSync(tree, { recursive: true, encoding: 'utf8' }).map((name) => join(tree, name));
  const expected = there().toSorted();
  await until('they agree', () => {
    assert.deepEqual(replayed(reader), expected);
    return true;
  });
  assert.ok(!reader.data('file.changed').some((data) => data.lost !== undefined));
});

/** What is there by the events alone: a directory that is deleted takes all in it. */
function replayed(reader: Reader): string[] {
  const there = new Set<string>();
  for (const { path, kind } of reader.data('file.changed')) {
    if (path === undefined) continue;
    if (kind !== 'deleted') there.add(path);
    else
      for (const each of there)
        if (each === path || each.startsWith(`${path}/`)) there.delete(each);
  }
  return [...there].toSorted();
}

test('Part 6.2: trees are armed again after the agent or its connection went away', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  const reader = await on.watching(tree);
  const arms = () => reader.data('file.changed').filter((data) => data.armed === true).length;
  await on.rig.killAgent();
  await writeFile(join(tree, 'meanwhile'), '');
  const blind = on.open({ watches: [`${tree}//./`, tree] });
  assert.deepEqual(blind.hello.watching, [{ path: tree, armed: false }]);
  await on.rig.startAgent();
  await until('it is armed again', () => arms() === 2);
  assert.deepEqual(await settled(reader, tree), []);
  assert.ok(armed(blind, tree));
});

test('a tree that nobody watches any more is let go', async (t) => {
  const on = await Listening.of(t);
  const tree = on.rig.at('files');
  const first = await on.watching(tree);
  const second = on.open({ watches: [tree] });
  assert.deepEqual(second.hello.watching, [{ path: tree, armed: true }]);
  const last = on.open();
  first.subscription?.end();
  await settled(second, tree);
  second.subscription?.end();
  await writeFile(join(tree, 'unseen'), '');
  const third = await on.watching(tree);
  assert.deepEqual(third.hello.watching, [{ path: tree, armed: false }]);
  await settled(third, tree);
  assert.deepEqual(changes(last), [...changes(second), ...changes(third)]);
  assert.ok(!changes(last).some((change) => change.includes('unseen')));
});
