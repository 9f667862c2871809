// Nothing grows with what passes through: not the host with a slow or stalled reader, not the agent with a
// command that does not stop writing.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sizes } from '../../packages/contract/guest/sizes.ts';
import { limits } from '../../packages/contract/limits.ts';
import { until } from '../support/until.ts';
import { computer, context, good, Rig } from './rig.ts';

const MB = 1_000_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of its own that a process has in memory, now. */
function ownMemory(pid: number | undefined): number {
  const [, kB] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kB) * 1_024;
}

async function sparse(rig: Rig, name: string): Promise<string> {
  const path = rig.at('files', name);
  await writeFile(path, '');
  await truncate(path, limits.file);
  return path;
}

test('four files of 64 MiB through a slow reader leave both processes small', async (t) => {
  const rig = await Rig.of(t);
  const path = await sparse(rig, 'large');
  collect();
  const before = process.memoryUsage();
  const agentBefore = ownMemory(rig.agent?.pid);
  let [most, agentMost, read] = [0, 0, 0];
  for (let i = 0; i < 4; i += 1) {
    const { content } = good(await rig.links.readFile(context, computer, path));
    for await (const piece of content) {
      read += piece.length;
      for (let wait = 0; wait < 3; wait += 1) await turn();
      if (read % (64 * sizes.payload) < sizes.payload) {
        most = Math.max(most, process.memoryUsage().rss - before.rss);
        agentMost = Math.max(agentMost, ownMemory(rig.agent?.pid) - agentBefore);
      }
    }
  }
  assert.equal(read, 4 * limits.file);
  t.diagnostic(`host +${(most / MB).toFixed(1)} MB, agent +${(agentMost / MB).toFixed(1)} MB`);
  // What is not collected yet counts too; V8 lets about 64 MB of buffers gather.
  assert.ok(most < 150 * MB, `the host grew by ${most} bytes`);
  assert.ok(agentMost < 20 * MB, `the agent grew by ${agentMost} bytes`);
});

test('a hundred stalled readers cost a window each and no more', async (t) => {
  const rig = await Rig.of(t);
  const path = await sparse(rig, 'large');
  const control = new AbortController();
  collect();
  const before = process.memoryUsage().arrayBuffers;
  const files = await Promise.all(
    Array.from({ length: 100 }, () => rig.links.readFile(control, computer, path)),
  );
  let [last, still] = [-1, 0];
  const held = await until('the guest has stopped sending', () => {
    collect();
    const now = process.memoryUsage().arrayBuffers - before;
    still = now === last ? still + 1 : 0;
    last = now;
    return still > 20 && now;
  });
  t.diagnostic(`${(held / files.length / 1_024).toFixed(0)} KiB for each`);
  assert.ok(held <= files.length * sizes.window, `${held} bytes are held`);
  // Another call is not held up by them.
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
  control.abort();
});

test('a command that writes without end costs the agent nothing', async (t) => {
  const rig = await Rig.of(t);
  await rig.exec('true');
  const before = ownMemory(rig.agent?.pid);
  const { pid } = await rig.start('exec cat /dev/zero');
  const moved = () => {
    const text = readFileSync(`/proc/${pid}/io`, 'utf8');
    return Number(/^wchar: (\d+)$/m.exec(text)?.[1]);
  };
  await until('it wrote 300 MB', () => moved() > 300 * MB);
  const grown = ownMemory(rig.agent?.pid) - before;
  t.diagnostic(`agent +${(grown / MB).toFixed(1)} MB`);
  assert.ok(grown < 20 * MB, `the agent grew by ${grown} bytes`);
  // And neither is anybody else held up by it.
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
  const killed = good(await rig.links.kill(context, computer, pid));
  assert.equal(killed.outTruncated, true);
  assert.equal(killed.exitCode, 137);
});

test('an idle agent is small', async (t) => {
  const rig = await Rig.of(t);
  const own = ownMemory(rig.agent?.pid);
  const status = readFileSync(`/proc/${rig.agent?.pid}/status`, 'utf8');
  t.diagnostic(`of its own ${(own / MB).toFixed(1)} MB; ${/^VmRSS:.*$/m.exec(status)?.[0]}`);
  // The rest is Node's own file, which all agents of a host share.
  assert.ok(own < 25 * MB, `${own} bytes of its own`);
});
