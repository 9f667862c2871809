// The agent in a computer: joins the link to the host with what it serves. Ships as one file.

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  encodeMessage,
  type GuestRequest,
  type Refusal,
} from '@cubicle/contract/guest/messages.ts';
import { guestProtocol } from '@cubicle/contract/guest/sizes.ts';
import { Cgroups, ownGroup } from './cgroups.ts';
import { Commands } from './commands.ts';
import { Desktop } from './desktop/desktop.ts';
import { DesktopReporter } from './desktop/reporter.ts';
import { Fifos } from './fifos.ts';
import { listFiles } from './file-list.ts';
import { readFile } from './file-read.ts';
import { writeFile } from './file-write.ts';
import { Link } from './link.ts';
import { OutputRoom } from './output-room.ts';
import { asRefused } from './refused.ts';
import { Secrets } from './secrets.ts';
import { showScreen } from './screen.ts';
import { DesktopWatch } from './session.ts';
import { places, readSettings } from './settings.ts';
import { Terminals } from './terminal/terminals.ts';
import { Uploads } from './uploads.ts';
import { randomName } from './random-name.ts';
import { Watches } from './watch/watches.ts';
import { SwayBackend } from './sway/backend.ts';
import { X11Backend } from './x11/backend.ts';
import { Display } from './x11/protocol/display.ts';

const settings = readSettings(process.env);
const at = places(settings);
const agentId = randomName(16);
const sweepMs = 30_000;
/** By convention "try again": the supervisor starts the agent that the host has put in place. */
const makeWay = 75;

mkdirSync(settings.run, { recursive: true });
clearExec();

const uploads = new Uploads(at.uploads);
const watches = new Watches();
const secrets = new Secrets({
  folder: settings.secrets,
  etc: settings.etc,
  user: settings.user,
});
const commands = new Commands({
  place: { folder: settings.exec, fifos: new Fifos(settings.exec), room: new OutputRoom() },
  cgroups: new Cgroups(settings.cgroups ? ownGroup() : undefined),
  sessionEnv: at.sessionEnv,
  secrets: () => secrets.env,
  user: settings.user,
  exited: ({ id }, exitCode) => {
    link.tell({ type: 'exited', execution_id: id, exit_code: exitCode });
  },
});
const terminals = new Terminals({
  folder: at.terminals,
  sessionEnv: at.sessionEnv,
  secrets: () => secrets.env,
  user: settings.user,
});
const session = new DesktopWatch(at.desktopReady, (ready) => {
  link.tell({ type: 'desktop', ready });
});

/** How long the display may owe an answer. */
const patienceMs = 5_000;
const backend =
  settings.desktop === 'wayland'
    ? new SwayBackend({ sessionEnv: at.sessionEnv, user: settings.user })
    : new X11Backend(new Display({ path: settings.display, patienceMs }));
const desktop = new Desktop(backend);
const reporter = new DesktopReporter(backend, (event) => link.tell(event));

const link = new Link({
  path: settings.link,
  hello: () => ({
    protocol: guestProtocol,
    boot_id: bootId(),
    agent_id: agentId,
    desktop_ready: session.ready,
    secrets: secrets.serial,
    running: commands.executions.running(),
    exited: commands.executions.exited(),
  }),
  greeted(host) {
    if (host.protocol !== guestProtocol) process.exit(makeWay);
    // A new host daemon knows none of those before it (wire-guest section 4).
    commands.executions.keepOnly(host.known);
    reporter.begin();
  },
  serve: (channel, asked) => {
    const operate = operations[asked.op] as Serve<GuestRequest>;
    operate(channel, asked).catch((error: unknown) => decline(channel, error));
  },
});

type Serve<Asked> = (channel: Channel, asked: Asked) => Promise<void>;
const operations: { [Op in GuestRequest['op']]: Serve<Extract<GuestRequest, { op: Op }>> } = {
  exec: (channel, asked) => commands.exec(channel, asked),
  start: (channel, asked) => commands.start(channel, asked),
  output: (channel, asked) => commands.output(channel, asked),
  kill: (channel, asked) => commands.kill(channel, asked),
  read: readFile,
  write: (channel, asked) => writeFile(channel, asked, { uploads, ...settings }),
  list: listFiles,
  desktop: (channel, asked) => desktop.serve(channel, asked),
  screen: (channel) => backend.devices.sharing(showScreen(channel, at.screen)),
  terminal: (channel, asked) => terminals.attach(channel, asked),
  watch: (channel, asked) => watches.watch(channel, asked),
  secrets: (channel) => secrets.serve(channel),
};

/** Before an answer a refusal says why; after one only a reset can. */
function decline(channel: Channel, error: unknown): void {
  const { reason, size, message } = asRefused(error);
  channel.refuse(
    encodeMessage({ reason, size, detail: message.slice(0, 200) } satisfies Refusal),
    error,
  );
}

/** Of what an agent before left, terminals alone are of use: they go on. */
function clearExec(): void {
  mkdirSync(settings.exec, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(settings.exec)) {
    const path = join(settings.exec, name);
    if (path !== at.terminals) rmSync(path, { recursive: true, force: true });
  }
}

/** A container has its host's boot id; the start of its first process tells one boot from the next. */
function bootId(): string {
  const kernel = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${kernel}:${readFileSync('/proc/1/stat', 'latin1').split(' ')[21]}`;
}

setInterval(() => commands.executions.sweep(), sweepMs);
await link.run();
