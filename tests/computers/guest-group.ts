// A guest as the kernel of the host sees it: its limits and what it uses.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Place } from '../../packages/host/engine/incus/place.ts';

const run = promisify(execFile);
const root = '/sys/fs/cgroup';

export class GuestGroup {
  readonly #place: Place;
  readonly #instance: string;

  constructor(place: Place, instance: string) {
    this.#place = place;
    this.#instance = instance;
  }

  get memoryBytes(): number {
    return Number(this.#read('memory', 'memory.usage_in_bytes', 'memory.current'));
  }

  get memoryLimitBytes(): number {
    return Number(this.#read('memory', 'memory.limit_in_bytes', 'memory.max'));
  }

  /** The processor's time that it has used. */
  get cpuNs(): string {
    return this.#read('cpuacct', 'cpuacct.usage', 'cpu.stat');
  }

  /** How many of the machine's processors it may use. */
  get cpus(): number {
    const ranges = this.#read('cpuset', 'cpuset.cpus', 'cpuset.cpus').split(',');
    return ranges.reduce((sum, range) => {
      const [first = 0, last = first] = range.split('-').map(Number);
      return sum + last - first + 1;
    }, 0);
  }

  /** A file of the guest's disk, which the host can read while the guest stands still. */
  at(path: string): string {
    return join(this.#disk, 'rootfs', path);
  }

  get #disk(): string {
    const { alias, pool } = this.#place;
    return join(alias, 'storage-pools', pool, 'containers', this.#instance);
  }

  /** What its disk may take; on a pool of btrfs only. */
  async diskLimitBytes(): Promise<number> {
    const { stdout } = await run('btrfs', ['qgroup', 'show', '-r', '-f', '--raw', this.#disk]);
    return Number(stdout.trim().split('\n').at(-1)?.trim().split(/\s+/)[3]);
  }

  #read(controller: string, first: string, unified: string): string {
    const group = `lxc.payload.${this.#instance}`;
    const own = join(root, controller, group, first);
    return readFileSync(existsSync(own) ? own : join(root, group, unified), 'utf8').trim();
  }
}
