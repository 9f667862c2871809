// The JSON that host and agent exchange: greetings, requests, answers, refusals, events.

import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { sessionPattern } from '../terminal.ts';
import { ProtocolError } from './protocol-error.ts';
import {
  either,
  fields,
  flag,
  listOf,
  mapOf,
  matching,
  oneOf,
  type Shape,
  type Shaped,
  taggedBy,
  text,
  whole,
  words,
} from './shape.ts';
import { desktopWants } from './desktop.ts';
import { counts, guestProtocol, sizes } from './sizes.ts';

const executionId = matching(idPattern('execution'));
const identity = matching(/^[0-9a-f]{32}$/);
const size = whole(0, Number.MAX_SAFE_INTEGER);
const orNull = <T>(shape: Shape<T>) => either(shape, oneOf(null));
const exitCode = whole(-1, 255);
const path = text(limits.path);
const side = whole(1, limits.terminalSide);
const serial = whole(0, 2 ** 31 - 1);

/** What an agent says first. What it does not name it no longer knows. */
export const agentHello = fields({
  protocol: whole(0, 65_535),
  boot_id: text(64),
  /** New at each start of the agent. */
  agent_id: identity,
  desktop_ready: flag,
  /** The last delivery of secrets that it holds; 0 for none. */
  secrets: serial,
  running: listOf(executionId, limits.execBackground),
  exited: listOf(fields({ id: executionId, exit_code: exitCode }), counts.exitedKept),
});
export type AgentHello = Shaped<typeof agentHello>;

/** Of a greeting in another protocol than ours nothing else can be known. */
export const foreignHello: Shape<{ readonly protocol: number }> = (
  value,
): value is { readonly protocol: number } =>
  typeof value === 'object' &&
  value !== null &&
  'protocol' in value &&
  whole(0, 65_535)(value.protocol) &&
  value.protocol !== guestProtocol;
export type ForeignHello = Shaped<typeof foreignHello>;

/** `known`: of the executions that the agent told, those that the host knows too. */
export const hostHello = fields({
  protocol: whole(0, 65_535),
  known: listOf(executionId, limits.execBackground + counts.exitedKept),
});
export type HostHello = Shaped<typeof hostHello>;

const session = oneOf('system', 'desktop');

/** One of `first` and `last`, `first` alone, or the last `suffix` bytes, as a Range header says it. */
const range = either(fields({ first: size, last: orNull(size) }), fields({ suffix: size }));
export type FileRange = Shaped<typeof range>;

/** The body of `exec` and `start` follows as data: `commandBody`. */
export const request = taggedBy('op', {
  exec: fields({ op: oneOf('exec'), session }),
  start: fields({ op: oneOf('start'), execution_id: executionId, session }),
  output: fields({
    op: oneOf('output'),
    execution_id: executionId,
    stdout_offset: size,
    stderr_offset: size,
    limit: whole(1, limits.execChunk),
  }),
  kill: fields({ op: oneOf('kill'), execution_id: executionId }),
  read: fields({ op: oneOf('read'), path, range: orNull(range), most: size }),
  write: fields({ op: oneOf('write'), path, create_only: flag, most: size }),
  list: fields({ op: oneOf('list'), path }),
  /** What is asked of the desktop follows as data, see desktop.ts. */
  desktop: fields({ op: oneOf('desktop'), want: oneOf(...desktopWants) }),
  screen: fields({ op: oneOf('screen') }),
  /** `create`: a session of this name is made where there is none. */
  terminal: fields({
    op: oneOf('terminal'),
    session: matching(sessionPattern),
    cols: side,
    rows: side,
    create: flag,
  }),
  /** Lasts as long as its channel: the host lets go of the tree by a reset. */
  watch: fields({ op: oneOf('watch'), path: text(limits.treePath) }),
  /** What is delivered follows as data: `secretsBody`. */
  secrets: fields({ op: oneOf('secrets') }),
});
export type GuestRequest = Shaped<typeof request>;
export type Session = Shaped<typeof session>;

export const commandBody = fields({
  command: text(sizes.command),
  cwd: orNull(path),
  env: mapOf(text(4_096), 64),
});
export type CommandBody = Shaped<typeof commandBody>;

/** By the name of the variable or the file. `replaces`: what is not among them goes. */
export const secretsBody = fields({
  serial,
  replaces: flag,
  env: mapOf(words(limits.secretValue), limits.secretBindings),
  files: mapOf(words(limits.secretValue), limits.secretFiles),
});
export type SecretsBody = Shaped<typeof secretsBody>;

export const secretsAnswer = fields({});

const wholeOutput = fields({ bytes: whole(0, limits.execOutput), truncated: flag });
const chunk = fields({
  bytes: whole(0, limits.execChunk),
  size: whole(0, limits.execOutput),
  truncated: flag,
});

/** Stdout follows as data of stream 1, then stderr of stream 2, of the lengths told here. */
export const execAnswer = fields({
  exit_code: exitCode,
  stdout: wholeOutput,
  stderr: wholeOutput,
});
export type ExecAnswer = Shaped<typeof execAnswer>;

export const startAnswer = fields({ pid: whole(1, 2 ** 31 - 1) });

export const outputAnswer = fields({
  /** Null while it runs. */
  exit_code: orNull(exitCode),
  killed: flag,
  stdout: chunk,
  stderr: chunk,
  /** What the agent itself has to say of the output. */
  diagnostic: text(1_024),
});
export type OutputAnswer = Shaped<typeof outputAnswer>;

export const killAnswer = fields({ killed: flag });

/** Data of stream 0 follows. `length` and `size` are null for what has no measure, such as /proc. */
export const readAnswer = fields({ start: size, length: orNull(size), size: orNull(size) });
export type ReadAnswer = Shaped<typeof readAnswer>;

/** RFB follows, both ways, as data of stream 0: what the desktop's own VNC server says. */
export const screenAnswer = fields({});

export const writeAnswer = fields({ bytes: size });
export const listAnswer = fields({ bytes: whole(0, 2 * sizes.listing) });

/** Follows `listAnswer` as data of stream 0. Names are checked by `listedName` besides. */
export const listing = fields({
  entries: listOf(
    fields({
      name: text(255),
      type: oneOf('file', 'directory', 'symlink', 'special', 'unavailable'),
      size_bytes: orNull(size),
    }),
    counts.listed,
  ),
  truncated: flag,
  skipped: whole(0, counts.listed),
});
export type Listing = Shaped<typeof listing>;

/** `{}`; data of stream 0 follows without end: lines of JSON, a `watchNews` each. */
export const watchAnswer = fields({});

/** Of one tree. `lost` and `armed` as the specification's Part 6.2 has them. */
export const watchNews = either(
  either(fields({ armed: oneOf(true) }), fields({ lost: oneOf('flood', 'budget', 'unwatchable') })),
  fields({ path: words(limits.path), kind: oneOf('created', 'modified', 'deleted'), dir: flag }),
);
export type WatchNews = Shaped<typeof watchNews>;
export type FileChange = Extract<WatchNews, { readonly path: string }>;

// eslint-disable-next-line no-control-regex -- control characters are what this refuses
const controls = /[\u0000-\u001f\u007f-\u009f]/;

/** Names with control characters are counted and not told. */
export function listedName(name: string): boolean {
  return name !== '' && name.isWellFormed() && !controls.test(name) && !name.includes('/');
}

/**
 * What is typed and shown follows both ways as data of stream 0, and on stream 1 a message a frame.
 * `pending`: bytes of input that an earlier attachment left. `lost_race`: somebody else took the last place
 * for a session meanwhile, and nothing follows.
 */
export const terminalAnswer = fields({
  pending: whole(0, 2 * limits.terminalInput),
  lost_race: flag,
});
export type TerminalAnswer = Shaped<typeof terminalAnswer>;

/** The host on stream 1. */
export const terminalResize = fields({ cols: side, rows: side });
export type TerminalResize = Shaped<typeof terminalResize>;

/** The agent on stream 1. `taken`: so many more bytes of input have reached the pty. */
export const terminalNews = taggedBy('type', {
  taken: fields({ type: oneOf('taken'), bytes: whole(1, 2 * limits.terminalInput) }),
  detached: fields({ type: oneOf('detached') }),
  exited: fields({ type: oneOf('exited'), code: whole(0, 255) }),
});
export type TerminalNews = Shaped<typeof terminalNews>;

/** Whether a change may be in this tree: no path leads out of it. */
export function isWithin(tree: string, changed: string): boolean {
  if (!changed.startsWith(`${tree}/`)) return false;
  const names = changed.slice(tree.length + 1).split('/');
  return names.every((name) => listedName(name) && name !== '.' && name !== '..');
}

const refusalReasons = [
  'absent',
  'absent_directory',
  'not_a_file',
  'not_a_directory',
  'symlink',
  'name_too_long',
  'exists',
  'too_large',
  'range',
  'denied',
  'no_room',
  'no_links',
  'no_session',
  'no_display',
  'invalid',
  'stale',
  'unconfirmed',
  'tiled',
  'too_many',
  'busy',
  'unknown',
  'failed',
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** `size`: of the file, where the reason is about it. `detail`: for a log, such as `EIO`. */
export const refusal = fields({
  reason: oneOf(...refusalReasons),
  size: orNull(size),
  detail: text(256),
});
export type Refusal = Shaped<typeof refusal>;

const windowId = matching(/^0x[0-9a-f]{1,16}$/);
const extent = whole(-(2 ** 31), 2 ** 31 - 1);
/** As wire-guest section 7 has it, but for `pid`, which is null where the window does not say. */
const window = fields({
  id: windowId,
  title: words(256),
  class: words(128),
  type: matching(/^[a-z_-]{1,32}$/),
  pid: orNull(whole(0, 2 ** 31 - 1)),
  x: extent,
  y: extent,
  width: extent,
  height: extent,
  focused: flag,
  visible: flag,
});
export type DesktopWindow = Shaped<typeof window>;

export const agentEvent = taggedBy('type', {
  /**
   * The watcher of windows and clipboard begins: what it told before no longer holds, and it announces
   * what is open. Or it has ended.
   */
  watcher: fields({ type: oneOf('watcher'), live: flag }),
  'window.opened': fields({ type: oneOf('window.opened'), window }),
  'window.focused': fields({ type: oneOf('window.focused'), window }),
  'window.blurred': fields({ type: oneOf('window.blurred'), id: windowId }),
  'window.closed': fields({ type: oneOf('window.closed'), id: windowId }),
  'clipboard.changed': fields({
    type: oneOf('clipboard.changed'),
    selection: oneOf('clipboard', 'primary'),
  }),
  desktop: fields({ type: oneOf('desktop'), ready: flag }),
  exited: fields({ type: oneOf('exited'), execution_id: executionId, exit_code: exitCode }),
});
export type AgentEvent = Shaped<typeof agentEvent>;
/** What the desktop's watcher tells. */
export type DesktopReport = Exclude<AgentEvent, { readonly type: 'desktop' | 'exited' }>;

export function encodeMessage(message: unknown): Buffer {
  return Buffer.from(JSON.stringify(message));
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function decodeMessage<T>(payload: Uint8Array, shape: Shape<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(payload));
  } catch {
    throw new ProtocolError('message', 'a message that is not JSON');
  }
  if (!shape(value)) throw new ProtocolError('message', 'a message of the wrong shape');
  return value;
}
