/** Installs the dependencies before `npm start` and `npm test`; returns at once when they are there. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { takeLock } from './setup-lock.mjs';
import { showProgress } from './setup-progress.mjs';

// Plain JavaScript without dependencies: it runs under the machine's own Node, 20 or later.
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const ownNode = join(modules, '.bin', 'node');
const stampFile = join(modules, '.cubicle-setup');
const oldestNode = 24;

/** Names what is to be installed: another lock file, system or processor needs another install. */
function wantedStamp() {
  const lock = readFileSync(join(root, 'package-lock.json'));
  const digest = createHash('sha256').update(lock).digest('hex');
  return `${digest} ${process.platform}-${process.arch}\n`;
}

function isInstalled(stamp) {
  try {
    return readFileSync(stampFile, 'utf8') === stamp && existsSync(ownNode);
  } catch {
    return false;
  }
}

/**
 * `npm start` may run us with the very node that `npm ci` is about to delete, so npm runs with the
 * machine's node, and without our node_modules/.bin in its path.
 */
function npmCommand() {
  const path = (process.env.PATH ?? '').split(delimiter);
  const env = { ...process.env };
  env.PATH = path.filter((folder) => !folder.startsWith(modules)).join(delimiter);
  // Development tools for `npm test`, and the database, which is an optional dependency.
  const args = ['ci', '--loglevel=error', '--no-fund', '--no-audit'];
  args.push('--include=dev', '--include=optional');
  const npm = process.env.npm_execpath ?? '';
  // Another package manager sets the same variable.
  if (!/^npm-cli\.c?js$/.test(basename(npm))) return { file: 'npm', args, env };
  const node = process.execPath.startsWith(modules) ? 'node' : process.execPath;
  return { file: node, args: [npm, ...args], env };
}

/** Runs npm and resolves with its exit code and what it printed. */
function install(lock) {
  const { file, args, env } = npmCommand();
  const npm = spawn(file, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  lock.coversProcess(npm.pid);
  let output = '';
  const keep = (text) => (output += text);
  npm.stdout.setEncoding('utf8').on('data', keep);
  npm.stderr.setEncoding('utf8').on('data', keep);
  // Ctrl-C reaches npm too; a plain kill does not. Either way npm ends before the lock goes.
  const pass = (signal) => npm.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, pass);
  return new Promise((resolve) => {
    npm.once('error', (error) => resolve({ code: 1, output: `${file}: ${error.message}` }));
    npm.once('close', (code, signal) => resolve({ code: signal ?? code, output }));
  });
}

/** npm puts the reason first, then its usage, and the place of its log last. */
function abridge(lines) {
  return lines.length <= 20 ? lines : [...lines.slice(0, 12), '…', ...lines.slice(-3)];
}

function fail(...lines) {
  console.error(lines.join('\n'));
  process.exitCode = 1;
}

function checkNode() {
  const { stdout, error } = spawnSync(ownNode, ['--version'], { encoding: 'utf8' });
  const major = Number(/^v(\d+)\./.exec(stdout ?? '')?.[1]);
  if (major >= oldestNode) return true;
  const found = error ? error.message : `it answers ${JSON.stringify(stdout.trim())}`;
  fail(
    `Cubicle runs on Node ${oldestNode}, which npm installs as node_modules/.bin/node, but ${found}; allow install scripts (npm config delete ignore-scripts) and run this again.`,
  );
  return false;
}

async function main() {
  const stamp = wantedStamp();
  if (isInstalled(stamp)) return;
  const lock = await takeLock(join(root, '.setup-lock'), () =>
    console.error('Another set-up is running in this folder; waiting for it.'),
  );
  try {
    if (isInstalled(stamp)) return;
    console.error('Installing the dependencies (npm ci); this happens once.');
    const stopProgress = showProgress('Installing');
    const { code, output } = await install(lock);
    stopProgress();
    if (typeof code === 'string') {
      fail(`The set-up was interrupted (${code}); the next start repeats it.`);
      return;
    }
    if (code !== 0) {
      fail(
        ...abridge(output.trim().split('\n')),
        `npm ci failed (${code}) for the reason above; check the network and the registry (npm config get registry), then run this again.`,
      );
      return;
    }
    if (!checkNode()) return;
    // Last, and all at once: an install that died half way has no stamp and is repeated.
    writeFileSync(`${stampFile}.new`, stamp);
    renameSync(`${stampFile}.new`, stampFile);
  } finally {
    lock.release();
  }
}

await main();
