// The composition root of a host daemon: engine, image, guests and the private API.

import { join } from 'node:path';
import { HostApi } from './api.ts';
import { agentFolder } from './agent-folder.ts';
import { Builds } from './builds/builds.ts';
import { answerBuilds } from './builds/builds-api.ts';
import { GuestWorkshop } from './builds/guest-workshop.ts';
import { SimulatedWorkshop } from './builds/simulated-workshop.ts';
import { Census } from './census.ts';
import { Computers } from './computers.ts';
import { DesktopApi } from './desktop-api.ts';
import type { Context, Engine } from './engine/engine.ts';
import { readEndpoint } from './engine/incus/endpoint.ts';
import { canRunEngine } from './engine/incus/install.ts';
import { openIncus } from './engine/incus/open.ts';
import { SimulatedEngine } from './engine/simulated/engine.ts';
import { Frames } from './frames.ts';
import { Events } from './events/events.ts';
import { GuestApi } from './guest-api.ts';
import { GuestLinks } from './guest/links.ts';
import { hostIdentity } from './identity.ts';
import { progressBar } from './images/progress-bar.ts';
import { LinkFolders } from './link-folder.ts';
import { Pool } from './pool.ts';
import { Roster } from './roster.ts';
import type { SocketEnd } from './sockets/kind.ts';
import { eventsKind } from './sockets/events.ts';
import { screenKind } from './sockets/screen.ts';
import { Sockets } from './sockets/sockets.ts';
import { terminalKind } from './sockets/terminal.ts';
import { Templates } from './templates.ts';
import { Terminals } from './terminal/terminals.ts';

export interface HostSettings {
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly engine: 'incus' | 'simulated';
  /** How many computers wait booted for a create; 0 for none. */
  readonly pool: number;
  /** What computers' disks may take together; undefined: four fifths of what is free at the first start. */
  readonly diskGb?: number | undefined;
}

export interface RunningHost {
  /** As the control plane registers it. */
  readonly row: { id: string; address: string; cpu: number; ram_mb: number; disk_gb: number };
  readonly engine: Engine;
  /** Computers keep running. */
  stop(): Promise<void>;
}

/** Desktops use a fraction of what they may, and share the blocks of their image: more is promised than is there. */
const promised = { memory: 2, disk: 8 };

export interface StartOptions {
  /** Gives up a start that is half way; a host that has started is stopped by `stop`. */
  readonly signal?: AbortSignal;
  /** The steady clock by which a computer is idle. */
  readonly now?: () => number;
  readonly longestBuildMs?: number;
  readonly log?: (problem: unknown) => void;
}

export async function startHost(
  settings: HostSettings,
  say: (line: string) => void,
  {
    signal = new AbortController().signal,
    now,
    longestBuildMs: longestMs,
    log = console.error,
  }: StartOptions = {},
): Promise<RunningHost> {
  const folder = join(settings.dataDir, 'host');
  const { id, token } = await hostIdentity(folder);
  const context = { signal };
  const { engine, stop: stopEngine } = await openEngine(context, settings, say);
  try {
    const templates = await Templates.open(
      context,
      { engine, cacheDir: settings.cacheDir, say, log },
      progressBar(process.stdout),
    );
    const links: GuestLinks = new GuestLinks({
      tell: (guest, event) => events.heard(guest, event),
    });
    const folders = new LinkFolders(join(folder, 'links'));
    const roster = new Roster(now);
    const events = new Events({ roster, links });
    const agentDir = await agentFolder(folder);
    const size = engine.kind === 'simulated' ? 0 : settings.pool;
    const pool = new Pool({ engine, links, folders, agentDir, image: templates.base, size, log });
    const workshop =
      engine instanceof SimulatedEngine ? new SimulatedWorkshop(engine) : new GuestWorkshop(links);
    const builds = new Builds({
      engine,
      links,
      folders,
      agentDir,
      workshop,
      templates,
      longestMs,
      log,
    });
    const census = new Census(engine, links, roster, events);
    const frames = new Frames(join(folder, 'frames'), links);
    const ended = (computer: string, end: SocketEnd) => sockets.changed(computer, end);
    const parts = {
      engine,
      links,
      folders,
      roster,
      census,
      frames,
      events,
      pool,
      agentDir,
      templates,
      builds,
      ended,
      log,
    };
    const computers = new Computers(parts);
    const terminals = new Terminals(links, {
      state: async (call, instance) => {
        const state = await computers.guestState(call, roster.computerOf(instance) ?? '');
        if (state === undefined) return 'running';
        return state === 'suspended' ? 'suspended' : 'not_running';
      },
      starting: (instance) => roster.isStarting(roster.computerOf(instance) ?? ''),
    });
    const sockets = new Sockets({
      kinds: {
        screen: screenKind(links, roster),
        events: eventsKind(events),
        terminal: terminalKind(terminals, roster),
      },
      instanceOf: (computer) => roster.get(computer)?.instance,
      guestState: (call, computer) => computers.guestState(call, computer),
      log,
    });
    await computers.adopt(context);
    pool.fillSoon();

    const { cpu, ramMb, diskGb } = await engine.capacity(context);
    const host = {
      id,
      cpu,
      ram_mb: ramMb * promised.memory,
      disk_gb: diskGb * promised.disk,
    };
    const guests = new GuestApi(computers, roster, links, new DesktopApi(links, frames));
    const api = new HostApi({
      token,
      computers,
      host: async () => ({ ...host, waiting: pool.waiting, images: templates.images }),
      signals: (...page) => events.signals(...page),
      events: (...page) => events.journal(...page),
      guest: (call) => guests.answer(call),
      builds: (call) => answerBuilds(builds, call),
      sockets,
      log,
    });
    const socket = join(folder, 'host.sock');
    await api.listen(socket);
    templates.prepareSoon();
    return {
      row: { ...host, address: `unix:${socket}` },
      engine,
      async stop() {
        await templates.stop();
        await builds.stop();
        await pool.stop();
        await sockets.stop();
        events.stop();
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
  context: Context,
  { engine: kind, dataDir, diskGb: poolGib }: HostSettings,
  say: (line: string) => void,
): Promise<OpenEngine> {
  if (kind === 'simulated') {
    const engine = new SimulatedEngine({ folder: join(dataDir, 'simulated') });
    return { engine, stop: () => engine.close() };
  }
  const endpoint = readEndpoint(process.env);
  const ability = await canRunEngine();
  if (endpoint === undefined && !ability.can) throw new Error(ability.reason);
  const opened = await openIncus(context, { dataDir, say, endpoint, poolGib });
  return { engine: opened.engine, stop: () => opened.stop({ keepComputers: true }) };
}
