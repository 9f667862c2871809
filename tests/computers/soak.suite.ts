// Eight subscribers with four watched trees each while real work is done in the computer: what they are told
// agrees with what is there, with one another, and the host keeps none of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';
import { type Entries, TreeReader } from './tree-reader.ts';

const base = '/var/tmp/soak';
const trees = ['library', 'repository', 'archive', 'odds'].map((name) => `${base}/${name}`);
const subscribers = 8;
/** More than any of it needs, and far less than all that is told takes. */
const mostGrowth = 192 * 2 ** 20;

/** Python's own library is compiled, put under version control, cloned, packed and unpacked. */
const building = `
set -e
cd ${base}
export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
source=$(echo /usr/lib/python3.*)
build() {
  cp -r "$source" library/one
  python3 -m compileall -q library/one || true
  cp -r library/one library/two
  find library/two -name '*.pyc' -delete
  mv library/one library/first
  python3 -m compileall -q library/two || true
  rm -rf library/first
}
commit() {
  git init -q -b main repository/a
  cp -r "$source" repository/a/src
  git -C repository/a add -A
  git -C repository/a commit -qm first
  git -C repository/a checkout -qb other
  git -C repository/a mv src moved
  git -C repository/a rm -rqf --ignore-unmatch moved/email moved/json
  git -C repository/a commit -qm second
  git -C repository/a checkout -q main
  git clone -q repository/a repository/b
  git -C repository/b checkout -q origin/other
  git -C repository/a gc -q
  rm -rf repository/b
}
pack() {
  tar cf /var/tmp/packed.tar -C /usr/share doc
  mkdir archive/x archive/y
  tar xf /var/tmp/packed.tar -C archive/x
  mv archive/x/doc archive/y/doc
  tar xf /var/tmp/packed.tar -C archive/x
  rm -rf archive/y
  mv archive/x archive/z
}
build & first=$!
commit & second=$!
pack & third=$!
wait $first; wait $second; wait $third
`;

/** Small steps at random, as many at once as are told without loss. */
const steps = `
import os, random, shutil, sys
random.seed(int(sys.argv[1]))
for tree in sys.argv[2:]:
    home = os.path.join(tree, "steps")
    os.makedirs(home, exist_ok=True)
    for _ in range(30):
        names = [os.path.join(at, name) for at, dirs, files in os.walk(home) for name in dirs + files]
        folders = [home] + [name for name in names if os.path.isdir(name) and not os.path.islink(name)]
        name = random.choice(names or [home])
        new = os.path.join(random.choice(folders), random.choice("abcdefgh"))
        do = random.randrange(7)
        try:
            if do == 0: os.mkdir(new)
            elif do == 1: os.makedirs(os.path.join(new, "x", "y"))
            elif do == 2: open(new, "a").write("more")
            elif do == 3: os.symlink("/etc", new)
            elif do == 4: os.rename(name, new)
            elif do == 5: os.link(name, new)
            elif name != home and len(names) > 12:
                if os.path.isdir(name) and not os.path.islink(name): shutil.rmtree(name)
                else: os.unlink(name)
            elif name != home and os.path.isdir(name):
                # Another one in its place, at once.
                os.rename(name, tree + "/aside"); os.mkdir(name); shutil.rmtree(tree + "/aside")
        except OSError:
            pass
`;

export function soak(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  let readers: TreeReader[];
  const told = new Map<number, string>();
  before(async () => {
    ground = theGround();
    id = await ground.desktop({ size: 'large' });
    await ground.run(id, `mkdir -p ${trees.join(' ')}; echo there > ${trees[0]}/before`);
    await ground.write(id, '/var/tmp/steps.py', Buffer.from(steps));
    const url = async () => (await ground.as.get(`/computers/${id}`)).body.events_url as string;
    const list = shared((tree) => listed(ground, id, tree));
    readers = Array.from({ length: subscribers }, () => new TreeReader({ url, trees, list, told }));
    for (const reader of readers) await reader.open();
    await until('all trees are watched', () => readers.every(({ armed }) => armed.size === 4));
  });
  after(async () => {
    for (const reader of readers ?? []) await reader.close();
  });

  /** Does it, and waits until everybody has understood what is there now. */
  const done = async (name: string, work: string) => {
    const marks = trees.map((tree) => `${tree}/${name}`).join(' ');
    await ground.run(id, `${work}\ntouch ${marks}`, { timeout_s: 300 });
    const faulty = () => readers.some(({ fault }) => fault !== undefined);
    const heard = (reader: TreeReader) =>
      trees.every((tree) => reader.believes(tree)?.has(`${tree}/${name}`) === true);
    await until('everybody has heard of it', () => faulty() || readers.every(heard));
    for (const tree of trees) {
      const there = await listed(ground, id, tree);
      await until('it is believed', () => {
        if (faulty()) return true;
        for (const reader of readers)
          assert.deepEqual(differences(there, reader.believes(tree)), []);
        return true;
      });
    }
    for (const { fault } of readers) if (fault !== undefined) throw fault;
  };

  test('Part 6.2: a flood is told, and whoever lists again then knows what is there', async () => {
    const rss = await memoryOf(ground);
    let most = 0;
    const meanwhile = setInterval(() => {
      readers.at(-1)?.cut();
      void memoryOf(ground).then((now) => (most = Math.max(most, now)));
    }, 500);
    try {
      await done('built', building);
    } finally {
      clearInterval(meanwhile);
    }
    assert.ok(readers.every(({ changes }) => changes > 1_000));
    assert.ok((readers.at(-1)?.returns ?? 0) > 0);
    assert.ok(most - rss < mostGrowth, `the host grew by ${most - rss} bytes`);
  });

  test('Part 6.2: without a flood what is told is all that is needed', async () => {
    const losses = () => readers.reduce((sum, reader) => sum + reader.losses, 0);
    // A flood of what was before may still be on its way.
    let known = -1;
    for (let n = 0; known !== losses(); n += 1) {
      known = losses();
      await done(`quiet-${n}`, ':');
    }
    for (let seed = 1; seed <= 16; seed += 1) {
      await done(`step-${seed}`, `python3 /var/tmp/steps.py ${seed} ${trees.join(' ')}`);
    }
    assert.equal(losses(), known);
  });
}

/** One listing serves all who asked before it began. */
function shared(list: (tree: string) => Promise<Entries>): (tree: string) => Promise<Entries> {
  const next = new Map<string, Promise<Entries>>();
  const last = new Map<string, Promise<unknown>>();
  return (tree) => {
    const asked = next.get(tree);
    if (asked !== undefined) return asked;
    const listing = (last.get(tree) ?? Promise.resolve()).then(() => {
      next.delete(tree);
      return list(tree);
    });
    next.set(tree, listing);
    last.set(
      tree,
      listing.catch(() => {}),
    );
    return listing;
  };
}

async function listed(ground: ComputerGround, id: string, tree: string): Promise<Entries> {
  // What vanishes while it is listed is no fault.
  const out = await ground.run(
    id,
    `find ${tree} -mindepth 1 -printf '%y %p\\n' 2>/dev/null || true`,
  );
  const lines = out.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [line.slice(2), line.startsWith('d')]));
}

/** In words, the first few. */
function differences(there: Entries, believed: Entries | undefined): string[] {
  if (believed === undefined) return ['a listing is under way'];
  const missing = [...there].filter(([path, dir]) => believed.get(path) !== dir);
  const extra = [...believed.keys()].filter((path) => !there.has(path));
  return [
    ...missing.slice(0, 5).map(([path]) => `not known: ${path}`),
    ...extra.slice(0, 5).map((path) => `not there: ${path}`),
  ];
}

async function memoryOf(ground: ComputerGround): Promise<number> {
  const status = readFileSync(`/proc/${await ground.pid('host')}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
