// The engine alone, asked over its REST API as an impatient user would: the measure of what we add.

import type { Context } from '../../packages/host/engine/engine.ts';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';

const context: Context = { signal: new AbortController().signal };

export class BareIncus {
  readonly #client: IncusClient;
  readonly #place: Place;
  readonly #image: string;
  #count = 0;

  private constructor(client: IncusClient, place: Place, image: string) {
    this.#client = client;
    this.#place = place;
    this.#image = image;
  }

  static async of(dataDir: string): Promise<BareIncus> {
    const place = await placeOf(dataDir);
    const client = new IncusClient({ kind: 'unix', path: place.socket });
    const [image] = await client.get<{ fingerprint: string }[]>(context, '/1.0/images?recursion=1');
    if (image === undefined) throw new Error('no image');
    return new BareIncus(client, place, image.fingerprint);
  }

  /** With the limits and the isolation of a computer, and nothing else. */
  async createAndStart(): Promise<string> {
    this.#count += 1;
    const name = `bare-${this.#count}`;
    await this.#client.change(context, 'POST', '/1.0/instances', {
      name,
      type: 'container',
      source: { type: 'image', fingerprint: this.#image },
      config: {
        'limits.cpu': '1',
        'limits.memory': '1024MiB',
        'security.idmap.isolated': 'true',
        'security.nesting': 'true',
      },
      devices: {
        root: { type: 'disk', path: '/', pool: this.#place.pool, size: '10GiB' },
        eth0: { type: 'nic', name: 'eth0', network: this.#place.bridge },
      },
      profiles: [],
    });
    await this.#client.change(context, 'PUT', `/1.0/instances/${name}/state`, { action: 'start' });
    return name;
  }

  async exec(name: string, command: readonly string[]): Promise<void> {
    await this.#client.change(context, 'POST', `/1.0/instances/${name}/exec`, {
      command,
      'wait-for-websocket': false,
      interactive: false,
    });
  }

  async delete(name: string): Promise<void> {
    const state = `/1.0/instances/${name}/state`;
    await this.#client.change(context, 'PUT', state, { action: 'stop', force: true });
    await this.#client.remove(context, `/1.0/instances/${name}`);
  }

  async running(): Promise<string[]> {
    const all = await this.#client.get<{ name: string; status: string }[]>(
      context,
      '/1.0/instances?recursion=1',
    );
    return all.filter(({ status }) => status === 'Running').map(({ name }) => name);
  }

  /** Everything the guest holds, its files in memory included. */
  async memory(name: string): Promise<number> {
    const path = `/1.0/instances/${name}/state`;
    return (await this.#client.get<{ memory: { usage: number } }>(context, path)).memory.usage;
  }

  close(): void {
    this.#client.close();
  }
}
