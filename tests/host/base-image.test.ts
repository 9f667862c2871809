/** Proves how the base image is made and kept; base-image-desktop.test.ts proves what is in it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { appendFile, chmod, cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type TestContext } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { machineArchive } from '../../packages/host/images/archive.ts';
import { takeBuildLock } from '../../packages/host/images/build-lock.ts';
import { ensureBaseImage } from '../../packages/host/images/build.ts';
import { removeBuildFolder } from '../../packages/host/images/leftovers.ts';
import { recipeDigest, recipeFolder } from '../../packages/host/images/recipe.ts';
import { BuildStages, type Progress } from '../../packages/host/images/stages.ts';
import { until } from '../support/until.ts';

const ability = await canRunEngine();
const asRoot = ability.can ? {} : { skip: ability.reason };

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-image-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Another process, which the test kills. */
const hold = (script: string, ...args: string[]) =>
  spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

const fail = (what: string) => () => assert.fail(what);

test('the digest follows the names and contents of the recipe and nothing else', async (t) => {
  const recipe = join(await folderFor(t), 'recipe');
  await cp(recipeFolder, recipe, { recursive: true });
  const digest = await recipeDigest();
  const desktop = join(recipe, 'overlay/usr/lib/cubicle/desktop');
  await chmod(desktop, 0o600);
  await utimes(desktop, 0, 0);
  assert.equal(await recipeDigest(recipe), digest);
  await rename(desktop, `${desktop}-2`);
  const renamed = await recipeDigest(recipe);
  assert.notEqual(renamed, digest);
  await appendFile(`${desktop}-2`, '#');
  assert.notEqual(await recipeDigest(recipe), renamed);
});

test('an image that is there is not made again', async (t) => {
  const cacheDir = await folderFor(t);
  const folder = join(cacheDir, 'images', `base-${await recipeDigest()}`);
  await mkdir(folder, { recursive: true });
  for (const name of ['metadata.tar', 'rootfs.squashfs']) await writeFile(join(folder, name), '');
  const image = await ensureBaseImage({ cacheDir, say: fail('said'), progress: fail('made') });
  assert.equal(image.rootfs, join(folder, 'rootfs.squashfs'));
  assert.deepEqual(await readdir(join(cacheDir, 'images')), [`base-${image.digest}`]);
});

test('one process at a time builds, and one that is killed holds nobody up', async (t) => {
  const file = join(await folderFor(t), 'lock');
  const holder = hold('hold-build-lock.ts', file);
  await once(holder.stdout, 'data');
  const waits = Promise.withResolvers<void>();
  const second = takeBuildLock(file, waits.resolve);
  await waits.promise;
  holder.kill('SIGKILL');
  await (await second).release();
  const again = await takeBuildLock(file, fail('the lock was not released'));
  const tired = new AbortController();
  await assert.rejects(takeBuildLock(file, () => tired.abort(), tired.signal));
  await again.release();
  const third = await takeBuildLock(file, fail('the lock was not released'));
  await third.release();
});

test(
  'a leftover goes with its mounts, and what is mounted there stays whole',
  asRoot,
  async (t) => {
    const [folder, elsewhere] = [await folderFor(t), await folderFor(t)];
    await writeFile(join(elsewhere, 'kept'), '');
    const work = join(folder, 'making-1', 'with a blank');
    await mkdir(work, { recursive: true });
    const mount = spawn('mount', ['--bind', elsewhere, work]);
    assert.deepEqual(await once(mount, 'close'), [0, null]);
    await removeBuildFolder(join(folder, 'making-1'));
    assert.deepEqual(await readdir(folder), []);
    assert.deepEqual(await readdir(elsewhere), ['kept']);
  },
);

test(
  'a build that is killed leaves no process or mount, and the next one its folder',
  asRoot,
  async (t) => {
    const cacheDir = await folderFor(t);
    const recipe = await smallRecipe(t);
    const builder = hold('hold-build.ts', cacheDir, recipe);
    const lines = createInterface(builder.stdout);
    for await (const stage of lines) if (stage === 'Making a minimal Debian') break;
    assert.notEqual(processesNaming(cacheDir).length, 0);
    builder.kill('SIGKILL');
    await until('its processes are gone', () => processesNaming(cacheDir).length === 0);
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(cacheDir));
    const left = await readdir(join(cacheDir, 'images'));
    const [unfinished] = left.filter((name) => name.startsWith('making-'));
    assert.ok(unfinished !== undefined, left.join());
    await mkdir(join(cacheDir, 'images', 'making-of-another-recipe'));

    // The next build begins anew, and ends in order when it is told to.
    const told = new AbortController();
    const { signal } = told;
    const next = ensureBaseImage({
      cacheDir,
      recipe,
      say() {},
      progress: () => told.abort(),
      signal,
    });
    await assert.rejects(next, { name: 'AbortError' });
    assert.deepEqual((await readdir(join(cacheDir, 'images'))).toSorted(), ['downloads', 'lock']);
  },
);

/** A recipe of nothing but Debian's base. */
async function smallRecipe(t: TestContext): Promise<string> {
  const recipe = join(await folderFor(t), 'recipe');
  await mkdir(join(recipe, 'overlay'), { recursive: true });
  await writeFile(join(recipe, 'packages'), 'less\n');
  await writeFile(join(recipe, 'dpkg.cfg'), 'force-unsafe-io\n');
  await writeFile(join(recipe, 'customise'), 'true\n');
  return recipe;
}

function processesNaming(text: string): string[] {
  const entries = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return entries.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}

test('progress never falls, names its stages in order and ends with everything', () => {
  const told: Progress[] = [];
  const stages = new BuildStages((progress) => told.push(progress));
  const output = [
    'I: running apt-get update...',
    'I: downloading packages with apt...',
    '0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.',
    'Need to get 3000 kB of archives.',
    'Get:1 http://archive/debian bookworm/main amd64 libc6 amd64 2.36 [2759 kB]',
    'Unpacking libc6:amd64 (2.36) ...',
    'Setting up libc6:amd64 (2.36) ...',
    'I: installing remaining packages inside the chroot...',
    '0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.',
    'Need to get 1,500 kB/4 MB of archives.',
    'Get:1 http://archive/debian bookworm/main amd64 less amd64 590 [1500 kB]',
    'Get:2 http://archive/debian bookworm/main amd64 file amd64 5 [2500 kB]',
    'Unpacking less (590) ...',
    // Set up early, because the next one needs it.
    'Setting up less (590) ...',
    'Unpacking file (5) ...',
    'Setting up file (5) ...',
    'I: running --customize-hook in shell: ...',
  ];
  for (const line of output) stages.line(line);
  stages.compressed(0.5);
  stages.finished();
  const done = told.map((progress) => progress.done);
  assert.deepEqual(
    done,
    done.toSorted((a, b) => a - b),
  );
  assert.equal(done.at(-1), 1);
  assert.deepEqual(
    [...new Set(told.map(({ stage }) => stage))],
    [
      'Reading the package lists',
      'Making a minimal Debian',
      'Downloading the desktop',
      'Unpacking the desktop',
      'Setting up the desktop',
      'Making it ours',
      'Compressing the image',
    ],
  );
});

const etcApt = {
  'sources.list':
    'deb [signed-by=/keys/a.gpg arch=amd64] http://near/debian bookworm main contrib\n',
  'sources.list.d/other.list': 'deb http://elsewhere/apt nodistro main\n',
  'sources.list.d/more.sources':
    'types: deb\nuris: http://near/security\nsuites: bookworm-security bookworm-backports\ncomponents: main\n',
  'sources.list.d/off.sources':
    'Enabled: no\nTypes: deb\nURIs: http://off/\nSuites: bookworm\nComponents: main\n',
};

test('packages come from the archive that the machine itself uses', async (t) => {
  const etc = await folderFor(t);
  await mkdir(join(etc, 'sources.list.d'));
  for (const [name, text] of Object.entries(etcApt)) await writeFile(join(etc, name), text);
  const { sources, keys } = await machineArchive('bookworm', etc);
  assert.equal(
    sources,
    `Types: deb
URIs: http://near/debian
Suites: bookworm
Components: main contrib
Signed-By: /keys/a.gpg

Types: deb
URIs: http://near/security
Suites: bookworm-security
Components: main
`,
  );
  assert.deepEqual(keys, ['/keys/a.gpg']);
  await rm(join(etc, 'sources.list'));
  await assert.rejects(machineArchive('bookworm', etc), /no apt source of this machine offers it/);
});
