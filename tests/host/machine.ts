/** Looks for what a place's Incus has put on the machine: the proof that nothing is left behind. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Place } from '../../packages/host/engine/incus/place.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

/** One line each: mounts, loop devices, interfaces, firewall rules, processes, groups, files in /run. */
export async function traces(place: Place, ids: readonly string[] = []): Promise<string[]> {
  const names = [place.folder, place.alias, place.bridge, place.links, place.table, ...ids];
  const ours = (line: string) => names.some((name) => line.includes(name));
  const everything: Record<string, string[]> = {
    mount: readFileSync('/proc/self/mountinfo', 'utf8').split('\n'),
    loop: await output('losetup', ['--list', '--noheadings', '--output', 'NAME,BACK-FILE']),
    interface: readdirSync('/sys/class/net'),
    rule: await output('nft', ['list', 'ruleset']),
    process: commandLines(),
    group: readdirSync('/sys/fs/cgroup').flatMap((hierarchy) =>
      groupsIn(`/sys/fs/cgroup/${hierarchy}`),
    ),
    file: readdirSync('/run').map((name) => `/run/${name}`),
  };
  return Object.entries(everything).flatMap(([kind, lines]) =>
    lines
      .filter((line) => ours(line) || nameless.test(line))
      .map((line) => `${kind}: ${line.trim()}`),
  );
}

/**
 * What a killed Incus leaves without a name on it: a loop device whose mount is gone, and its table for
 * trying out nftables. Those of another test that runs at this moment are gone in the next.
 */
const nameless = /^\S+\s+\/disks\/cubicle\.img|^table \S+ incus_test_/;

export async function assertNoTrace(place: Place, ids: readonly string[] = []): Promise<void> {
  let left: string[] = [];
  await until('nothing is left', async () => {
    left = await traces(place, ids);
    return left.length === 0;
  }).catch(() => {});
  assert.deepEqual(left, [], 'something of the Incus is left on the machine');
}

async function output(file: string, args: string[]): Promise<string[]> {
  const { stdout } = await run(file, args, { maxBuffer: 16 * 1024 * 1024 });
  return stdout.split('\n');
}

function commandLines(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && +name !== process.pid);
  return pids.map((pid) => {
    try {
      const [line, environment] = ['cmdline', 'environ'].map((file) =>
        readFileSync(`/proc/${pid}/${file}`, 'utf8').replaceAll('\0', ' '),
      );
      const place = /INCUS_DIR=\S+/.exec(environment ?? '')?.[0] ?? '';
      return `${pid} ${line} ${place}`;
    } catch {
      return '';
    }
  });
}

function groupsIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith('lxc.'))
      .map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
}
