#!/usr/bin/env node
// The `cubicle` command under whatever Node is there: hands over to the Node 24 of the checkout.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
const main = fileURLToPath(new URL('./main.ts', import.meta.url));
const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', () => {
  console.error('Cubicle is not set up yet: run `npm start` in its checkout once.');
  process.exitCode = 1;
});
child.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});
