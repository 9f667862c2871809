// What the host asks of commands: run one, start one, read its output, kill it.

import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  type CommandBody,
  commandBody,
  decodeMessage,
  encodeMessage,
  type ExecAnswer,
  type GuestRequest,
  type OutputAnswer,
  type Session,
} from '@cubicle/contract/guest/messages.ts';
import { sizes } from '@cubicle/contract/guest/sizes.ts';
import { findAccount, ownAccount } from './accounts.ts';
import type { Capture } from './capture.ts';
import type { Cgroups } from './cgroups.ts';
import { type Command, type CommandPlace, startCommand } from './command.ts';
import { commandLine } from './command-line.ts';
import { type Execution, Executions } from './executions.ts';
import { killTree } from './process-tree.ts';
import { Refused } from './refused.ts';
import { sendRead } from './sending.ts';
import { readSession } from './session.ts';

type Asked<Op extends GuestRequest['op']> = Extract<GuestRequest, { op: Op }>;

/** Commands whose output somebody still holds: two pipes each, and daemons count for ever. */
const mostOpen = 512;
/** A process that does not die in this time is stuck in the kernel; the answer then says it runs. */
const dyingMs = 5_000;

export interface CommandsOptions {
  readonly place: CommandPlace;
  readonly cgroups: Cgroups;
  readonly sessionEnv: string;
  /** Variables of bound secrets; the caller's own come before them. */
  readonly secrets: () => Readonly<Record<string, string>>;
  readonly user: string;
  readonly exited: (execution: Execution, exitCode: number) => void;
}

export class Commands {
  readonly executions = new Executions();
  readonly #options: CommandsOptions;
  #open = 0;

  constructor(options: CommandsOptions) {
    this.#options = options;
    options.place.room.makeRoom = () => this.executions.makeRoom();
  }

  /** Answers when the command ends. A host that gives up before lets it run on. */
  async exec(channel: Channel, { session }: Asked<'exec'>): Promise<void> {
    // One that timed out before an agent that stood still had heard of it runs all the same.
    channel.keepWhole();
    const body = await readBody(channel);
    const command = await this.#start(body, session);
    await Promise.race([command.exited, channel.until(() => channel.abandoned)]);
    if (!channel.abandoned && command.exitCode !== undefined) {
      const { stdout, stderr, exitCode } = command;
      stdout.stopKeeping();
      stderr.stopKeeping();
      channel.accept(
        encodeMessage({
          exit_code: exitCode,
          stdout: { bytes: stdout.size, truncated: stdout.truncated },
          stderr: { bytes: stderr.size, truncated: stderr.truncated },
        } satisfies ExecAnswer),
      );
      const sent = await sendOutput(channel, 1, stdout, 0, stdout.size);
      if (sent) await sendOutput(channel, 2, stderr, 0, stderr.size);
      channel.end();
    }
    command.letGo();
  }

  async start(channel: Channel, asked: Asked<'start'>): Promise<void> {
    const body = await readBody(channel);
    const id = asked.execution_id;
    const execution = await this.executions.admit(async () => {
      const group = this.#options.cgroups.make(id);
      const command = await this.#start(body, asked.session, { id, procs: group?.procs });
      return { id, command, group, killed: false, endedAt: undefined };
    });
    void this.#followToEnd(execution);
    channel.accept(encodeMessage({ pid: execution.command.pid }));
    channel.end();
  }

  async output(channel: Channel, asked: Asked<'output'>): Promise<void> {
    const { command, killed } = this.executions.get(asked.execution_id);
    const { stdout, stderr } = command;
    const troubles = { stdout: stdout.trouble, stderr: stderr.trouble };
    const chunk = (capture: Capture, offset: number) => ({
      bytes: Math.max(0, Math.min(asked.limit, capture.size - offset)),
      size: capture.size,
      truncated: capture.truncated,
    });
    const answer: OutputAnswer = {
      exit_code: command.exitCode ?? null,
      killed,
      stdout: chunk(stdout, asked.stdout_offset),
      stderr: chunk(stderr, asked.stderr_offset),
      diagnostic: Object.entries(troubles)
        .map(([name, trouble]) => (trouble === undefined ? '' : `${name}: ${trouble}\n`))
        .join(''),
    };
    channel.accept(encodeMessage(answer));
    const sent = await sendOutput(channel, 1, stdout, asked.stdout_offset, answer.stdout.bytes);
    if (sent) await sendOutput(channel, 2, stderr, asked.stderr_offset, answer.stderr.bytes);
    channel.end();
  }

  /** Answers when the command is gone. One that had ended loses the processes it left. */
  async kill(channel: Channel, asked: Asked<'kill'>): Promise<void> {
    const execution = this.executions.get(asked.execution_id);
    const { command, group } = execution;
    const ran = command.exitCode === undefined;
    execution.killed ||= ran;
    group?.kill();
    // The group is entered by the command itself, which may not have come to that.
    await killTree(execution.id, () => (command.exitCode === undefined ? command.pid : undefined));
    const patience = Promise.withResolvers<void>();
    const timer = setTimeout(patience.resolve, dyingMs);
    await Promise.race([command.exited, patience.promise]);
    clearTimeout(timer);
    channel.accept(encodeMessage({ killed: ran }));
    channel.end();
  }

  async #start(
    body: CommandBody,
    session: Session,
    background?: { id: string; procs: string | undefined },
  ): Promise<Command> {
    if (this.#open >= mostOpen) throw new Refused('busy', { detail: `${mostOpen} commands` });
    const { place, sessionEnv, secrets } = this.#options;
    const variables = session === 'desktop' ? readSession(sessionEnv) : {};
    if (variables === undefined) throw new Refused('no_session');
    const account = session === 'desktop' ? findAccount(this.#options.user) : undefined;
    const env = { ...secrets(), ...body.env };
    const line = commandLine(
      { ...body, env },
      {
        account: account ?? ownAccount(),
        session: variables,
        group: background?.procs,
        marker: background?.id,
      },
    );
    this.#open += 1;
    try {
      const command = await startCommand(line, place);
      void command.closed.then(() => (this.#open -= 1));
      return command;
    } catch (error) {
      this.#open -= 1;
      throw error;
    }
  }

  async #followToEnd(execution: Execution): Promise<void> {
    const exitCode = await execution.command.exited;
    this.executions.ended(execution);
    this.#options.exited(execution, exitCode);
    await execution.command.closed;
    if (execution.group !== undefined) this.#options.cgroups.dispose(execution.group);
  }
}

async function readBody(channel: Channel): Promise<CommandBody> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (let piece = await channel.receive(); piece !== undefined; piece = await channel.receive()) {
    length += piece.bytes.length;
    if (length > sizes.command) throw new Refused('too_large');
    pieces.push(piece.bytes);
  }
  return decodeMessage(Buffer.concat(pieces), commandBody);
}

/** False when the host wants no more. */
async function sendOutput(
  channel: Channel,
  stream: number,
  capture: Capture,
  offset: number,
  length: number,
): Promise<boolean> {
  const sent = await sendRead(channel, stream, length, (buffer, at) =>
    capture.read(buffer, offset + at),
  );
  if (sent === undefined) return false;
  if (sent < length) throw new Error('the output was given up');
  return true;
}
