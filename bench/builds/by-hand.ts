// The same build as a person makes it with the engine's own command line: launch, exec, file push, stop, and
// publish for those who want an image of the engine's.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Context } from '../../packages/host/engine/engine.ts';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { programPath } from '../../packages/host/engine/incus/programs.ts';

const run = promisify(execFile);
const context: Context = { signal: new AbortController().signal };

export interface Steps {
  readonly packages: readonly string[];
  readonly script: string;
  readonly path: string;
  readonly content: string;
}

const name = 'by-hand';
const online = 'until ip -4 route show default | grep -q .; do sleep 0.1; done';
const clean = 'apt-get clean; rm -rf /var/lib/apt/lists/* /tmp/*; : >/etc/machine-id';

export class ByHand {
  readonly #place: Place;
  readonly #image: string;

  private constructor(place: Place, image: string) {
    this.#place = place;
    this.#image = image;
  }

  static async of(dataDir: string): Promise<ByHand> {
    const place = await placeOf(dataDir);
    const client = new IncusClient({ kind: 'unix', path: place.socket });
    try {
      const images = await client.get<{ fingerprint: string }[]>(
        context,
        '/1.0/images?recursion=1',
      );
      const [image] = images;
      if (image === undefined) throw new Error('no image');
      return new ByHand(place, image.fingerprint);
    } finally {
      client.close();
    }
  }

  /** To a stopped instance with everything in it. */
  async build({ packages, script, path, content }: Steps): Promise<void> {
    const { pool, bridge } = this.#place;
    const place = ['--no-profiles', '--storage', pool, '--network', bridge];
    const config = ['limits.cpu=2', 'limits.memory=2048MiB', 'security.nesting=true'];
    const settings = config.flatMap((setting) => ['--config', setting]);
    await this.#incus(['launch', this.#image, name, ...place, ...settings]);
    await this.#sh(online);
    await this.#sh('DEBIAN_FRONTEND=noninteractive apt-get update -q');
    await this.#sh(
      `DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ${packages.join(' ')}`,
    );
    await this.#incus(['exec', name, '--', 'bash', '-e', '-c', script]);
    const push = ['file', 'push', '--create-dirs', '--mode=0644', '-', `${name}${path}`];
    await this.#incus(push, content);
    await this.#sh(clean);
    await this.#incus(['stop', name]);
  }

  async publish(): Promise<void> {
    await this.#incus(['publish', name, '--alias', name]);
  }

  async remove(): Promise<void> {
    await this.#incus(['delete', '--force', name]);
    await this.#incus(['image', 'delete', name]).catch(() => {});
  }

  #sh(script: string): Promise<void> {
    return this.#incus(['exec', name, '--', 'sh', '-c', script]);
  }

  async #incus(args: readonly string[], input = ''): Promise<void> {
    const env = { ...process.env, PATH: programPath.join(':'), INCUS_DIR: this.#place.alias };
    const running = run('incus', args, { env, maxBuffer: 64 * 1024 * 1024 });
    // It reads what it is given to its end.
    running.child.stdin?.end(input);
    await running;
  }
}
