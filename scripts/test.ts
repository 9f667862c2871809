// `npm test` after the checks: one PostgreSQL for all test files, each file on its own copy of a migrated
// database. Arguments name test files or folders; without any, everything runs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
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
  const child = spawn(process.execPath, ['--test', '--test-concurrency=2', ...flags, ...files], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, CUBICLE_TEST_POSTGRES: server.url },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
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
