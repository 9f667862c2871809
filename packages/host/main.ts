// The composition root of a host daemon: engine, image, guests and the private API.

import { join } from 'node:path';
import { HostApi } from './api.ts';
import { agentFolder } from './agent-folder.ts';
import { Computers } from './computers.ts';
import type { Engine } from './engine/engine.ts';
import { readEndpoint } from './engine/incus/endpoint.ts';
import { canRunEngine } from './engine/incus/install.ts';
import { openIncus } from './engine/incus/open.ts';
import { SimulatedEngine } from './engine/simulated/engine.ts';
import { GuestApi } from './guest-api.ts';
import { GuestLinks } from './guest/links.ts';
import { hostIdentity } from './identity.ts';
import { ensureBaseImage } from './images/build.ts';
import { progressBar } from './images/progress-bar.ts';
import { LinkFolders } from './link-folder.ts';
import { Pool } from './pool.ts';
import { Roster } from './roster.ts';

export interface HostSettings {
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly engine: 'incus' | 'simulated';
  /** How many computers wait booted for a create; 0 for none. */
  readonly pool: number;
}

export interface RunningHost {
  /** As the control plane registers it. */
  readonly row: { id: string; address: string; cpu: number; ram_mb: number; disk_gb: number };
  readonly engine: Engine;
  /** Computers keep running. */
  stop(): Promise<void>;
}

/** Desktops use a fraction of what they may; twice the memory is promised. */
const memoryPromised = 2;
const importMs = 600_000;

export async function startHost(
  settings: HostSettings,
  say: (line: string) => void,
  log: (problem: unknown) => void = console.error,
): Promise<RunningHost> {
  const folder = join(settings.dataDir, 'host');
  const { id, token } = await hostIdentity(folder);
  const whole = { signal: new AbortController().signal };
  const { engine, stop: stopEngine } = await openEngine(settings, say);
  try {
    const image = await prepareImage(engine, settings, say);
    const links = new GuestLinks();
    const folders = new LinkFolders(join(folder, 'links'));
    const roster = new Roster();
    const agentDir = await agentFolder(folder);
    const size = engine.kind === 'simulated' ? 0 : settings.pool;
    const pool = new Pool({ engine, links, folders, agentDir, image, size, log });
    // One template so far; others come with builds.
    const imageOf = async () => image;
    const parts = { engine, links, folders, roster, pool, agentDir, imageOf, log };
    const computers = new Computers(parts);
    await computers.adopt(whole);
    pool.fillSoon();

    const { cpu, ramMb, diskGb } = await engine.capacity(whole);
    const host = { id, cpu, ram_mb: ramMb * memoryPromised, disk_gb: diskGb };
    const guests = new GuestApi(computers, roster, links);
    const api = new HostApi({
      token,
      computers,
      host: async () => host,
      guest: (call) => guests.answer(call),
      log,
    });
    const socket = join(folder, 'host.sock');
    await api.listen(socket);
    return {
      row: { ...host, address: `unix:${socket}` },
      engine,
      async stop() {
        await pool.stop();
        await api.close();
        await links.stop();
        await stopEngine();
      },
    };
  } catch (error) {
    await stopEngine();
    throw error;
  }
}

interface OpenEngine {
  readonly engine: Engine;
  readonly stop: () => Promise<void>;
}

async function openEngine(
  { engine: kind, dataDir }: HostSettings,
  say: (line: string) => void,
): Promise<OpenEngine> {
  if (kind === 'simulated') {
    const engine = new SimulatedEngine({ folder: join(dataDir, 'simulated') });
    return { engine, stop: () => engine.close() };
  }
  const endpoint = readEndpoint(process.env);
  const ability = await canRunEngine();
  if (endpoint === undefined && !ability.can) throw new Error(ability.reason);
  const { signal } = new AbortController();
  const opened = await openIncus({ signal }, { dataDir, say, endpoint });
  return { engine: opened.engine, stop: () => opened.stop({ keepComputers: true }) };
}

async function prepareImage(
  engine: Engine,
  { cacheDir }: HostSettings,
  say: (line: string) => void,
): Promise<string> {
  const image =
    engine.kind === 'simulated'
      ? { digest: 'simulated', metadata: '', rootfs: '' }
      : await ensureBaseImage({ cacheDir, say, progress: progressBar(process.stdout) });
  const context = { signal: AbortSignal.timeout(importMs) };
  if (!(await engine.hasImage(context, image.digest))) {
    say('Importing the base image');
    await engine.importImage(context, image.digest, image);
  }
  return image.digest;
}
