// `npm test` after the checks: one PostgreSQL for all test files, each file on its own copy of a migrated
// database. Arguments name test files or folders; without any, everything runs. With --once-more, what
// failed is run again on its own, and the run fails only if it fails twice: a machine that others use too
// may take the processor away at any moment. What failed at first is told all the same.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../packages/server/db/migrate.ts';
import { openEmbeddedPostgres } from '../packages/server/postgres/embedded.ts';
import { canRunEngine, installEngine } from '../packages/host/engine/incus/install.ts';
import { ensureTilingImage } from '../packages/host/images/build.ts';
import { progressBar } from '../packages/host/images/progress-bar.ts';
import { root } from './checkout.ts';

const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
const isOnceMore = flags.includes('--once-more');
/** More than that is no accident. */
const mostAgain = 3;
/** Files at a time: most of them wait for guests, and two leave half of two processors idle. */
const concurrency = 3;
const files = (asked.length === 0 ? ['tests'] : asked)
  .flatMap((path) => {
    const whole = join(root, path);
    return statSync(whole).isDirectory() ? globSync(join(whole, '**/*.test.ts')) : [whole];
  })
  .toSorted();

if (files.some((file) => /\/tests\/(computers|host)\//.test(file))) await prepareEngine();
const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-tests-'));
const server = await openEmbeddedPostgres({ dataDir, role: 'service', say: console.log });
try {
  const admin = new pg.Client({ ...server.connection, database: 'postgres' });
  await admin.connect();
  await admin.query('CREATE DATABASE cubicle_template');
  await admin.end();
  await migrate({ ...server.connection, database: 'cubicle_template' });
  const { failed, hasPassed } = await run(files);
  const isAgain = isOnceMore && failed.length > 0 && failed.length <= mostAgain;
  if (isAgain) console.log(`\nFailed at first, once more:\n${failed.join('\n')}\n`);
  process.exitCode = hasPassed || (isAgain && (await run(failed)).hasPassed) ? 0 : 1;
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}

async function run(these: readonly string[]): Promise<{ failed: string[]; hasPassed: boolean }> {
  const list = join(dataDir, 'failed');
  const reporters = [
    ['spec', 'stdout'],
    [join(root, 'scripts/failed-files.ts'), list],
  ].flatMap(([name, to]) => [`--test-reporter=${name}`, `--test-reporter-destination=${to}`]);
  const passedOn = flags.filter((flag) => flag !== '--once-more');
  const args = ['--test', `--test-concurrency=${concurrency}`, ...reporters, ...passedOn, ...these];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, CUBICLE_TEST_POSTGRES: server.url },
  });
  const end = (signal: NodeJS.Signals) => child.kill(signal);
  process.on('SIGINT', end).on('SIGTERM', end);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('SIGINT', end).off('SIGTERM', end);
  const failed = code === null ? [] : (await readFile(list, 'utf8')).split('\n').filter(Boolean);
  return { failed, hasPassed: code === 0 };
}

/** Once for all files: on a fresh machine this takes minutes, and no test waits that long for anything. */
async function prepareEngine(): Promise<void> {
  const ability = await canRunEngine();
  if (!ability.can) {
    console.log(`Tests of real computers are skipped: ${ability.reason}`);
    return;
  }
  await installEngine(console.log);
  // And the base image, which it adds to.
  await ensureTilingImage({ say: console.log, progress: progressBar(process.stdout) });
}
