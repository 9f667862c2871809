// A desktop of its own for a test file: Xvnc on a free display, a window manager, and real programs that
// see what we do from the other side.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Display } from '../../../packages/guest/x11/protocol/display.ts';
import { unhung, until } from '../../support/until.ts';

export const context = { signal: new AbortController().signal };

/** The reason to skip, or false. The same is tested again on real computers. */
export function lacking(...programs: readonly string[]): string | false {
  const absent = ['Xvnc', 'openbox', 'xprop', ...programs].filter((name) => !installed(name));
  return absent.length > 0 && `not installed here: ${absent.join(', ')}`;
}

function installed(name: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export interface Screen {
  readonly geometry?: string;
  readonly depth?: number;
  readonly manager?: boolean;
}

export class DesktopRig {
  readonly folder: string;
  readonly name: string;
  readonly path: string;
  readonly display: Display;
  readonly server: ChildProcess;
  manager: ChildProcess | undefined;
  readonly #children: ChildProcess[];

  private constructor(folder: string, number: string, server: ChildProcess) {
    this.folder = folder;
    this.name = `:${number}`;
    this.path = `/tmp/.X11-unix/X${number}`;
    this.display = new Display({ path: this.path, patienceMs: 30_000 });
    this.server = server;
    this.#children = [server];
  }

  static async start({ geometry = '1280x800', depth = 24, manager = true }: Screen = {}) {
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-x11-'));
    const args = ['-geometry', geometry, '-depth', String(depth), '-noreset', '-nolisten', 'tcp'];
    const vnc = ['-SecurityTypes', 'None', '-rfbport', '-1', '-rfbunixpath', join(folder, 'vnc')];
    const server = spawn('Xvnc', ['-displayfd', '3', ...args, ...vnc], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    let told = '';
    server.stdio[3]?.on('data', (bytes: Buffer) => (told += bytes.toString()));
    const number = await until('Xvnc tells its display', () => /^(\d+)\n/.exec(told)?.[1]);
    const rig = new DesktopRig(folder, number, server);
    if (manager) await rig.#manage();
    return rig;
  }

  /** A program that runs until the test file ends. */
  launch(program: string, ...args: readonly string[]): ChildProcess {
    const child = spawn(program, args, { env: this.#env(), stdio: ['ignore', 'pipe', 'ignore'] });
    this.#children.push(child);
    return child;
  }

  /** A program that comes to its end: what it wrote. */
  async run(program: string, args: readonly string[], input = ''): Promise<string> {
    // What goes on in the background holds the output open, so only that of a reader is awaited.
    const reads = input === '';
    const child = reads
      ? spawn(program, args, { env: this.#env(), stdio: ['ignore', 'pipe', 'ignore'] })
      : spawn(program, args, { env: this.#env(), stdio: ['pipe', 'ignore', 'ignore'] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stdin?.end(input);
    await unhung(`${program} ${args.join(' ')}`, once(child, reads ? 'close' : 'exit'));
    return output;
  }

  async end(): Promise<void> {
    this.display.close();
    for (const child of this.#children.toReversed()) await stop(child);
    await rm(this.folder, { recursive: true, force: true });
  }

  async #manage(): Promise<void> {
    this.manager = this.launch('openbox', '--sm-disable');
    await until('openbox manages', async () =>
      (await this.run('xprop', ['-root', '_NET_SUPPORTING_WM_CHECK'])).includes('0x'),
    );
  }

  #env(): NodeJS.ProcessEnv {
    // Nothing of the tester's own settings reaches a program.
    return { PATH: process.env['PATH'], HOME: this.folder, DISPLAY: this.name, LC_ALL: 'C.UTF-8' };
  }
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
