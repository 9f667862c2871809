/** Computers from the base image in an Incus of a test's own, each with its link folder and a stand-in agent. */
import assert from 'node:assert/strict';
import { chmod, copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OpenedIncus, openIncus } from '../../packages/host/engine/incus/open.ts';
import { ensureBaseImage } from '../../packages/host/images/build.ts';
import { progressBar } from '../../packages/host/images/progress-bar.ts';
import { until } from '../support/until.ts';
import { live, newId, specOf } from './engine-suite.ts';
import { execIn } from './guest-shell.ts';
import { removeGround } from './incus-ground.ts';

/** Node as heavy as the real agent's, doing nothing. */
const standIn = 'setInterval(() => {}, 60_000);\n';

const shape = { cpu: 2, ramMb: 2_048, diskGb: 8 };

export class Desktop {
  readonly id: string;
  readonly link: string;
  readonly #ground: DesktopGround;

  constructor(ground: DesktopGround, id: string) {
    this.#ground = ground;
    this.id = id;
    this.link = join(ground.folder, 'links', id);
  }

  /** What a line of shell prints, run by root; it must succeed. */
  async root(script: string): Promise<string> {
    const { code, output } = await execIn(this.#ground.opened.place, this.id, script);
    assert.equal(code, 0, `${script}: ${output}`);
    return output.trim();
  }

  /** The same in the desktop's session, as its user. */
  async user(script: string): Promise<string> {
    const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
    const user = 'setpriv --reuid user --regid user --init-groups';
    return await this.root(`env -i $(cat /run/cubicle/session.env) ${user} sh -c ${quoted}`);
  }

  async ready(): Promise<this> {
    await until('the desktop is ready', () => this.readySince());
    return this;
  }

  /** Another one for each session. */
  async readySince(): Promise<string> {
    return await this.root('stat --format %z /run/cubicle/desktop-ready');
  }
}

export class DesktopGround {
  readonly folder: string;
  readonly opened: OpenedIncus;
  readonly #digest: string;

  private constructor(folder: string, opened: OpenedIncus, digest: string) {
    this.folder = folder;
    this.opened = opened;
    this.#digest = digest;
  }

  /** The image is the one of the cache folder; the first run of all makes it. */
  static async open(): Promise<DesktopGround> {
    const image = await ensureBaseImage({
      say: console.error,
      progress: progressBar(process.stderr),
    });
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-desktops-'));
    const agent = join(folder, 'agent');
    await mkdir(agent);
    await copyFile(await realpath(process.execPath), join(agent, 'node'));
    await writeFile(join(agent, 'agent.mjs'), standIn);
    const dataDir = join(folder, 'data');
    const opened = await openIncus(live, { dataDir, say: () => {}, largestPoolGib: 10 });
    const ground = new DesktopGround(folder, opened, image.digest);
    try {
      await opened.engine.importImage(live, image.digest, image);
    } catch (error) {
      await ground.close();
      throw error;
    }
    return ground;
  }

  /** Started, and not waited for. */
  async start(resolution = '1280x800x24', source?: Desktop): Promise<Desktop> {
    const desktop = new Desktop(this, newId());
    const { id, link } = desktop;
    await mkdir(link, { recursive: true });
    await chmod(link, 0o755);
    const computer = { id: `vm-${id}`, resolution, hostname: id };
    await writeFile(join(link, 'computer.json'), JSON.stringify(computer));
    const at = (name: string, hostPath: string) => ({
      name,
      hostPath,
      guestPath: `/opt/cubicle/${name}`,
      readOnly: true,
    });
    const mounts = [at('agent', join(this.folder, 'agent')), at('link', link)];
    const spec = specOf(id, { shape, mounts });
    const { engine } = this.opened;
    if (source === undefined) await engine.create(live, spec, this.#digest);
    else await engine.copy(live, spec, source.id);
    await engine.start(live, id);
    return desktop;
  }

  async stop({ id }: Desktop): Promise<void> {
    await this.opened.engine.stop(live, id, true);
  }

  async close(): Promise<void> {
    await this.opened.purge();
    await removeGround(join(this.folder, 'data'), this.opened.place);
    await rm(this.folder, { recursive: true, force: true });
  }
}
