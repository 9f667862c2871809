// Commands in a guest: run one, start one, read its output, kill it (wire-guest sections 3 and 4).

import { randomBytes } from 'node:crypto';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  type CommandBody,
  encodeMessage,
  execAnswer,
  killAnswer,
  type OutputAnswer,
  outputAnswer,
  type Session,
  startAnswer,
} from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Execution } from './executions.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import type { Guest } from './guest.ts';
import { failed, outcome, refusedCommand, type Result } from './result.ts';
import { output, type Output } from './streams.ts';

export interface CommandRequest {
  readonly command: string;
  readonly session?: Session;
  /** Missing in the guest: the command is not run and exits with 127. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The guest sends the output as it is read, and keeps it until then or until the signal aborts. */
export interface ExecResult extends Output {
  /** −1 when it timed out: it runs on, and its output is lost. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly outTruncated: boolean;
  readonly errTruncated: boolean;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export interface Polled {
  readonly pid: number;
  readonly executionId: string;
  /** Absent until it exits. */
  readonly exitCode?: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** Positions after these bytes. */
  readonly stdoutOffset: number;
  readonly stderrOffset: number;
  readonly more: boolean;
  readonly killed: boolean;
  readonly outTruncated: boolean;
  readonly errTruncated: boolean;
}

export interface OutputRead {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly stdoutOffset: number;
  readonly stderrOffset: number;
  readonly stdoutMore: boolean;
  readonly stderrMore: boolean;
  /** What the agent itself has to say, a few lines at most. */
  readonly diagnostic: string;
}

export interface Offsets {
  readonly stdoutOffset: number;
  readonly stderrOffset: number;
  readonly limit: number;
}

const unknownCommand = failed('unknown_command', 'No such command, or it ended too long ago.');
const timedOut = Symbol('timed out');

/** Waits for its end. A command that is given up runs on. */
export async function exec(
  context: Context,
  guest: Guest,
  request: CommandRequest,
  timeoutMs: number,
): Promise<Result<ExecResult>> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const asked = { op: 'exec', session: request.session ?? 'system' } as const;
    const result = await guest.ask(context, asked, execAnswer, refusedCommand, async (channel) => {
      timer = setTimeout(() => channel.reset(timedOut), timeoutMs);
      await sendCommand(channel, request);
    });
    if (!result.ok) return result;
    const { stdout, stderr, exit_code: exitCode } = result.answer;
    return {
      ok: true,
      exitCode,
      timedOut: false,
      outTruncated: stdout.truncated,
      errTruncated: stderr.truncated,
      stdoutBytes: stdout.bytes,
      stderrBytes: stderr.bytes,
      ...output(result, stdout.bytes, stderr.bytes),
    };
  } catch (error) {
    if (error === timedOut) return tookTooLong();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function* none(): AsyncGenerator<Buffer, void, undefined> {}
const tookTooLong = (): Result<ExecResult> => ({
  ok: true,
  exitCode: -1,
  timedOut: true,
  outTruncated: false,
  errTruncated: false,
  stdoutBytes: 0,
  stderrBytes: 0,
  stdout: none(),
  stderr: none(),
});

export async function start(
  context: Context,
  guest: Guest,
  request: CommandRequest,
): Promise<Result<{ readonly execution: Execution }>> {
  const executionId = `exec_${randomBytes(16).toString('hex')}`;
  const { executions } = guest;
  if (!executions.expect(executionId)) {
    return failed(
      'too_many',
      `The computer already has ${limits.execBackground} background commands running.`,
    );
  }
  let begun = false;
  try {
    const result = await guest.ask(
      context,
      { op: 'start', execution_id: executionId, session: request.session ?? 'system' },
      startAnswer,
      refusedCommand,
      (channel) => sendCommand(channel, request),
    );
    if (!result.ok) return result;
    executions.started(executionId, result.answer.pid);
    begun = true;
    return { ok: true, execution: executions.byId(executionId) as Execution };
  } finally {
    if (!begun) executions.withdraw(executionId);
  }
}

/** Reads on where the last poll of this command ended. */
export function poll(context: Context, guest: Guest, pid: number): Promise<Result<Polled>> {
  return readOn(context, guest, pid, async () => ({ ok: true }));
}

/** The whole tree, and then the end of its output. */
export function kill(context: Context, guest: Guest, pid: number): Promise<Result<Polled>> {
  return readOn(context, guest, pid, async ({ executionId }) => {
    const asked = { op: 'kill', execution_id: executionId } as const;
    return guest.ask(context, asked, killAnswer, refusedCommand);
  });
}

export async function readOutput(
  context: Context,
  guest: Guest,
  executionId: string,
  offsets: Offsets,
): Promise<Result<OutputRead>> {
  const execution = guest.executions.byId(executionId);
  if (execution === undefined || execution.status === 'lost') return unknownCommand;
  const read = await readChunk(context, guest, execution, offsets);
  if (!read.ok) return read;
  const { stdout, stderr, answer } = read;
  const { limit } = offsets;
  const stdoutOffset = offsets.stdoutOffset + stdout.length;
  const stderrOffset = offsets.stderrOffset + stderr.length;
  return {
    ok: true,
    stdout,
    stderr,
    stdoutOffset,
    stderrOffset,
    stdoutMore: stdout.length === limit && answer.stdout.size > stdoutOffset,
    stderrMore: stderr.length === limit && answer.stderr.size > stderrOffset,
    diagnostic: answer.diagnostic,
  };
}

async function readOn(
  context: Context,
  guest: Guest,
  pid: number,
  first: (execution: Execution) => Promise<Result<object>>,
): Promise<Result<Polled>> {
  const execution = guest.executions.byPid(pid);
  if (execution === undefined || execution.status === 'lost') return unknownCommand;
  const { executionId } = execution;
  const turn = guest.executions.inTurn(executionId, async (reading): Promise<Result<Polled>> => {
    const before = await first(execution);
    if (!before.ok) return before;
    const read = await readChunk(context, guest, execution, {
      stdoutOffset: reading.stdout,
      stderrOffset: reading.stderr,
      limit: limits.execChunk,
    });
    if (!read.ok) return read;
    const { stdout, stderr, answer } = read;
    reading.stdout += stdout.length;
    reading.stderr += stderr.length;
    return {
      ok: true,
      pid,
      executionId,
      ...(answer.exit_code === null ? {} : { exitCode: answer.exit_code }),
      stdout,
      stderr,
      stdoutOffset: reading.stdout,
      stderrOffset: reading.stderr,
      more: answer.stdout.size > reading.stdout || answer.stderr.size > reading.stderr,
      killed: answer.killed,
      outTruncated: answer.stdout.truncated,
      errTruncated: answer.stderr.truncated,
    };
  });
  return turn === undefined ? unknownCommand : unlessAborted(context, turn);
}

interface Chunk {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly answer: OutputAnswer;
}

async function readChunk(
  context: Context,
  guest: Guest,
  { executionId }: Execution,
  { stdoutOffset, stderrOffset, limit }: Offsets,
): Promise<Result<Chunk>> {
  const result = await guest.ask(
    context,
    {
      op: 'output',
      execution_id: executionId,
      stdout_offset: stdoutOffset,
      stderr_offset: stderrOffset,
      limit,
    },
    outputAnswer,
    refusedCommand,
  );
  if (!result.ok) return result;
  const { answer, fault } = result;
  const { stdout, stderr, exit_code: exitCode } = answer;
  try {
    if (Math.max(stdout.bytes, stderr.bytes) > limit) fault('more output than was asked for');
    const streams = output(result, stdout.bytes, stderr.bytes);
    const out = Buffer.concat(await Array.fromAsync(streams.stdout));
    const err = Buffer.concat(await Array.fromAsync(streams.stderr));
    // The answer may overtake the event that tells the same.
    if (exitCode !== null) guest.executions.exited(executionId, exitCode);
    return { ok: true, stdout: out, stderr: err, answer };
  } catch (error) {
    return outcome(error);
  }
}

async function sendCommand(channel: Channel, request: CommandRequest): Promise<void> {
  const { command, cwd = null, env = {} } = request;
  if (await channel.send(0, encodeMessage({ command, cwd, env } satisfies CommandBody))) {
    channel.end();
  }
}
