/** Lets one set-up at a time work in a checkout; a lock whose holder died does not count. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const pollMs = 200;
const heartbeatMs = 2_000;
/** A holder without a heartbeat for this long is another process that got the same pid. */
const holderSilentMs = 30_000;
/** An npm that outlives its set-up has no heartbeat; it is given this long. */
const orphanSilentMs = 300_000;

/** Makes the folder, which only one process can, and waits until it is this one. */
export async function takeLock(folder, onWait) {
  let told = false;
  for (;;) {
    try {
      mkdirSync(folder);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (removeIfStale(folder)) continue;
    if (!told) onWait();
    told = true;
    await pause(pollMs);
  }
  const holders = join(folder, 'pids');
  writeFileSync(holders, `${process.pid}\n`);
  const heartbeat = setInterval(() => touch(folder), heartbeatMs);
  heartbeat.unref();
  return {
    /** The lock also lasts as long as this process, should we be killed before it ends. */
    coversProcess(pid) {
      if (pid !== undefined) writeFileSync(holders, `${process.pid}\n${pid}\n`);
    },
    release() {
      clearInterval(heartbeat);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function touch(folder) {
  try {
    utimesSync(folder, new Date(), new Date());
  } catch {
    // Somebody removed the lock by hand: the install goes on.
  }
}

function removeIfStale(folder) {
  const text = readHolders(folder);
  if (text === undefined || !isStale(folder, text)) return false;
  // Moved away first and looked at again: another waiter may have made a new lock meanwhile.
  const aside = `${folder}.${process.pid}`;
  try {
    renameSync(folder, aside);
    if (readHolders(aside) === text) rmSync(aside, { recursive: true, force: true });
    else renameSync(aside, folder);
    return true;
  } catch {
    return false;
  }
}

function isStale(folder, text) {
  let silentMs;
  try {
    silentMs = Date.now() - statSync(folder).mtimeMs;
  } catch {
    return false;
  }
  const [holder, npm] = text.split('\n').map(Number);
  const held = isAlive(holder) && silentMs < holderSilentMs;
  const covered = isAlive(npm) && silentMs < orphanSilentMs;
  // A lock without a pid is one that is being made.
  return text === '' ? silentMs > holderSilentMs : !held && !covered;
}

/** Undefined when there is no lock any more, empty when its holder has not signed it yet. */
function readHolders(folder) {
  try {
    statSync(folder);
    return readFileSync(join(folder, 'pids'), 'utf8');
  } catch (error) {
    return error.path === folder ? undefined : '';
  }
}

function isAlive(pid) {
  if (!pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
