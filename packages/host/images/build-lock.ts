// One build at a time in a cache folder: a lock of the kernel's, held by a child that ends with us.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface BuildLock {
  release(): Promise<void>;
}

/** Waits for whoever holds it, and says so. */
export async function takeBuildLock(
  file: string,
  onWait: () => void,
  signal?: AbortSignal,
): Promise<BuildLock> {
  signal?.throwIfAborted();
  const atOnce = await tryLock(file, ['--nonblock']);
  if (atOnce !== undefined) return atOnce;
  onWait();
  const waited = await tryLock(file, [], signal);
  if (waited === undefined) signal?.throwIfAborted();
  if (waited === undefined) throw new Error(`The lock ${file} could not be taken.`);
  return waited;
}

/** `cat` ends at the end of its input, which comes when this process ends, however it does. */
async function tryLock(
  file: string,
  options: string[],
  signal?: AbortSignal,
): Promise<BuildLock | undefined> {
  const child = spawn('flock', [...options, file, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const giveUp = () => child.kill();
  signal?.addEventListener('abort', giveUp, { once: true });
  if (signal?.aborted === true) giveUp();
  const held = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    ended.then(() => false),
  ]);
  signal?.removeEventListener('abort', giveUp);
  if (!held) return undefined;
  return {
    async release() {
      child.stdin.end();
      await ended;
    },
  };
}
