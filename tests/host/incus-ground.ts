/** An Incus of a test's own in a temporary folder, with the tiny image in it; it leaves nothing behind. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IncusDaemon } from '../../packages/host/engine/incus/daemon.ts';
import { type OpenedIncus, openIncus } from '../../packages/host/engine/incus/open.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { erase } from '../../packages/host/engine/incus/sweep.ts';
import { until } from '../support/until.ts';
import { type Ground, live } from './engine-suite.ts';
import { execIn, type Finished } from './guest-shell.ts';
import { assertNoTrace } from './machine.ts';
import { tinyImage } from './tiny-image.ts';

export class IncusGround implements Ground {
  readonly dataDir: string;
  readonly digest: string;
  readonly files: Ground['files'];
  readonly #opened: OpenedIncus;

  private constructor(
    dataDir: string,
    opened: OpenedIncus,
    image: Pick<Ground, 'digest' | 'files'>,
  ) {
    this.dataDir = dataDir;
    this.digest = image.digest;
    this.files = image.files;
    this.#opened = opened;
  }

  static async open(): Promise<IncusGround> {
    // A folder of mode 0700, as an operator's may be.
    const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-incus-'));
    const place = await placeOf(dataDir);
    try {
      const opened = await openIncus(live, { dataDir, say: () => {}, largestPoolGib: 10 });
      const ground = new IncusGround(dataDir, opened, await tinyImage());
      endWithTheProcess(place, dataDir, () => opened.purge());
      await ground.engine.importImage(live, ground.digest, ground.files);
      return ground;
    } catch (error) {
      await erase(place);
      await rm(dataDir, { recursive: true, force: true });
      throw error;
    }
  }

  get engine() {
    return this.#opened.engine;
  }

  get place(): Place {
    return this.#opened.place;
  }

  get daemon(): IncusDaemon {
    assert.ok(this.#opened.daemon);
    return this.#opened.daemon;
  }

  /** Runs a shell's line in the guest as its root. */
  async exec(id: string, script: string): Promise<Finished> {
    return await execIn(this.place, id, script);
  }

  async write(id: string, path: string, text: string): Promise<void> {
    const { code, output } = await this.exec(id, `printf %s '${text}' > ${path}`);
    assert.equal(code, 0, output);
  }

  async read(id: string, path: string): Promise<string | undefined> {
    const { code, output } = await this.exec(id, `cat ${path}`);
    return code === 0 ? output : undefined;
  }

  /** When the guest's first process began: another one after every boot. */
  async session(id: string): Promise<string> {
    const { code, output } = await this.exec(id, `cut -d ' ' -f 22 /proc/1/stat`);
    assert.equal(code, 0, output);
    return output;
  }

  async crash(): Promise<void> {
    const { pid } = this.daemon;
    process.kill(pid, 'SIGKILL');
    await until('another daemon is there', () => this.daemon.pid !== pid);
    await this.engine.list(live);
  }

  async close(): Promise<void> {
    await this.#opened.purge();
    await removeGround(this.dataDir, this.place);
  }
}

const endings = new Map<string, () => Promise<void>>();

/** A test file that is interrupted takes its Incus and its folder with it. */
export function endWithTheProcess(place: Place, folder: string, purge: () => Promise<void>): void {
  endings.set(place.alias, async () => {
    await purge();
    await rm(folder, { recursive: true, force: true });
  });
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    void Promise.allSettled([...endings.values()].map((purge) => purge())).then(() =>
      process.exit(1),
    );
  });
}

/** Fails when anything is left, and takes it away all the same. */
export async function removeGround(dataDir: string, place: Place): Promise<void> {
  endings.delete(place.alias);
  try {
    await assertNoTrace(place);
  } finally {
    await erase(place);
    await rm(dataDir, { recursive: true, force: true });
  }
}
