// Calls into guests as the control plane makes them: the answers' JSON is written here, as it comes out of
// the guest, so that nobody holds it whole (wire-guest sections 3, 4 and 9).

import { once } from 'node:events';
import { basename } from 'node:path';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { GuestFailure } from '@cubicle/contract/host/api.ts';
import type { FileRange } from '@cubicle/contract/guest/messages.ts';
import { type GuestRequest, readText, sendJson } from './api.ts';
import type { Computers } from './computers.ts';
import { type DesktopApi, drives } from './desktop-api.ts';
import type { ExecResult, Polled } from './guest/exec.ts';
import type { Execution } from './guest/executions.ts';
import type { GuestLinks } from './guest/links.ts';
import type { Failed } from './guest/result.ts';
import type { Roster } from './roster.ts';

interface ExecRequest {
  command: string;
  timeout_s: number;
  session?: 'desktop';
  background?: boolean;
  cwd?: string;
  env?: Record<string, string>;
}

export class GuestApi {
  readonly #computers: Computers;
  readonly #roster: Roster;
  readonly #links: GuestLinks;
  readonly #desktop: DesktopApi;

  constructor(computers: Computers, roster: Roster, links: GuestLinks, desktop: DesktopApi) {
    this.#computers = computers;
    this.#roster = roster;
    this.#links = links;
    this.#desktop = desktop;
  }

  /** False when the path is none of these. */
  async answer(call: GuestRequest): Promise<boolean> {
    const { request, response, rest } = call;
    const [what, name = '', more] = rest;
    const instance = this.#roster.get(call.computer)?.instance;
    if (what === 'executions' && more === undefined) {
      this.#execution(call, instance, name);
      return true;
    }
    if (instance === undefined) {
      sendFailure(response, { failure: 'absent', error: 'No such computer here.' });
      return true;
    }
    const refusal = await this.#computers.guestState(call.context, call.computer);
    if (refusal !== undefined) {
      const pictured = what === 'screenshot' && refusal === 'suspended';
      if (pictured && (await this.#desktop.lastPicture(call, instance))) return true;
      const failure = pictured ? 'no_frame' : refusal;
      const error =
        failure === 'starting' ? 'The computer is starting.' : 'The computer is not running.';
      sendFailure(response, { failure, error });
      return true;
    }
    const done = this.#counts(call) ? this.#roster.use(call.computer) : () => {};
    try {
      if (what === 'exec' && name === '') await this.#exec(call, instance);
      else if (what === 'exec') await this.#poll(call, instance, Number(name));
      else if (what === 'executions') await this.#output(call, instance, name);
      else if (what === 'files' && name === 'list') await this.#list(call, instance);
      else if (what === 'files' && request.method === 'PUT') await this.#write(call, instance);
      else if (what === 'files') await this.#read(call, instance);
      else if (what === 'screenshot' || what === 'desktop') await this.#see(call, instance);
      else return false;
    } finally {
      done();
    }
    return true;
  }

  /** The wake table of wire-guest section 0: what only looks is no use of the computer. */
  #counts({ rest: [what, name], request }: GuestRequest): boolean {
    if (what === 'exec') return request.method !== 'GET';
    if (what === 'desktop') return drives(name ?? '');
    return what === 'files' && name !== 'list';
  }

  async #see(call: GuestRequest, instance: string): Promise<void> {
    const [what, want = ''] = call.rest;
    const failure = await (what === 'screenshot'
      ? this.#desktop.screenshot(call, instance)
      : this.#desktop.ask(call, instance, want));
    if (failure !== undefined) this.#fail(call.computer, call.response, failure);
  }

  async #exec({ context, computer, request, response }: GuestRequest, id: string): Promise<void> {
    const asked = JSON.parse(await readText(request)) as ExecRequest;
    const { timeout_s: timeoutS, background, session, ...rest } = asked;
    const command = { ...rest, session: session ?? ('system' as const) };
    if (background === true) {
      const started = await this.#links.execStart(context, id, command);
      if (!started.ok) return this.#fail(computer, response, started);
      const { pid, executionId } = started.execution;
      return sendJson(response, 202, polledJson({ ...nothing, pid, executionId }, true));
    }
    const result = await this.#links.exec(context, id, command, timeoutS * 1_000);
    if (!result.ok) return this.#fail(computer, response, result);
    await sendOutput(response, result);
  }

  async #poll(
    { context, computer, request, response }: GuestRequest,
    id: string,
    pid: number,
  ): Promise<void> {
    const kill = request.method === 'DELETE';
    const polled = await (kill
      ? this.#links.kill(context, id, pid)
      : this.#links.poll(context, id, pid));
    if (!polled.ok) return this.#fail(computer, response, polled);
    sendJson(response, 200, polledJson(polled, polled.exitCode === undefined));
  }

  #execution(
    { computer, response }: GuestRequest,
    instance: string | undefined,
    name: string,
  ): void {
    const execution = instance === undefined ? undefined : this.#links.execution(instance, name);
    if (execution === undefined)
      sendFailure(response, { failure: 'unknown_command', error: 'No such command.' });
    else sendJson(response, 200, executionJson(computer, execution));
  }

  async #output(
    { context, computer, query, response }: GuestRequest,
    id: string,
    executionId: string,
  ): Promise<void> {
    const read = await this.#links.readOutput(context, id, executionId, {
      stdoutOffset: Number(query.get('stdout_offset')),
      stderrOffset: Number(query.get('stderr_offset')),
      limit: Number(query.get('limit')),
    });
    if (!read.ok) return this.#fail(computer, response, read);
    sendJson(response, 200, {
      execution_id: executionId,
      stdout_b64: read.stdout.toString('base64'),
      stderr_b64: read.stderr.toString('base64'),
      stdout_offset: read.stdoutOffset,
      stderr_offset: read.stderrOffset,
      stdout_more: read.stdoutMore,
      stderr_more: read.stderrMore,
      diagnostic_b64: Buffer.from(read.diagnostic).toString('base64'),
      diagnostic_truncated: false,
    });
  }

  async #read(
    { context, computer, query, request, response }: GuestRequest,
    id: string,
  ): Promise<void> {
    const path = query.get('path') ?? '';
    const range = readRange(request.headers.range);
    const file = await this.#links.readFile(context, id, path, range);
    if (!file.ok) return this.#fail(computer, response, file);
    const { size, start, length } = file;
    const partial = range !== null && size !== null && length !== null;
    response.writeHead(partial ? 206 : 200, {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${safeName(path)}"`,
      'accept-ranges': size === null ? 'none' : 'bytes',
      ...(length !== null && { 'content-length': length }),
      ...(partial && { 'content-range': `bytes ${start}-${start + length - 1}/${size}` }),
    });
    await pipeline(file.content, response);
  }

  async #write(
    { context, computer, query, request, response }: GuestRequest,
    id: string,
  ): Promise<void> {
    const path = query.get('path') ?? '';
    const createOnly = query.get('create_only') === '1';
    // The control plane sends the content only when it is asked to: until here it could be refused whole.
    response.writeContinue();
    const written = await this.#links.writeFile(context, id, path, { createOnly }, request);
    if (!written.ok) return this.#fail(computer, response, written);
    sendJson(response, 200, { path, bytes: written.bytes });
  }

  async #list({ context, computer, query, response }: GuestRequest, id: string): Promise<void> {
    const path = query.get('path') ?? '';
    const listed = await this.#links.listFiles(context, id, path);
    if (!listed.ok) return this.#fail(computer, response, listed);
    const entries = listed.entries.map(({ name, type, size_bytes }) => ({
      name,
      type,
      ...(size_bytes !== null && { size_bytes }),
    }));
    const { truncated, skipped } = listed;
    sendJson(response, 200, { path, entries, truncated, skipped });
  }

  #fail(computer: string, response: ServerResponse, { failure, message, size }: Failed): void {
    sendFailure(response, {
      failure: this.#told(computer, failure),
      error: message,
      ...(size !== undefined && { size }),
    });
  }

  #told(computer: string, failure: Failed['failure']): GuestFailure['failure'] {
    switch (failure) {
      case 'no_agent':
        // A silent agent soon after a start is starting; later it is silent.
        return this.#roster.isStarting(computer) ? 'starting' : 'silent';
      case 'broken':
        return 'silent';
      case 'no_directory':
        return 'no_file';
      default:
        return failure;
    }
  }
}

const nothing = {
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  stdoutOffset: 0,
  stderrOffset: 0,
  more: false,
  killed: false,
  outTruncated: false,
  errTruncated: false,
};

function polledJson(polled: Polled, running: boolean): object {
  return {
    pid: polled.pid,
    execution_id: polled.executionId,
    running,
    ...(polled.exitCode !== undefined && { exit_code: polled.exitCode }),
    stdout_b64: polled.stdout.toString('base64'),
    stderr_b64: polled.stderr.toString('base64'),
    stdout_offset: polled.stdoutOffset,
    stderr_offset: polled.stderrOffset,
    more: polled.more,
    killed: polled.killed,
    out_truncated: polled.outTruncated,
    err_truncated: polled.errTruncated,
  };
}

function executionJson(computer: string, execution: Execution): object {
  const { executionId, pid, status, startedAt } = execution;
  return {
    execution_id: executionId,
    computer_id: computer,
    pid,
    status,
    started_at: startedAt.toISOString(),
    ...(execution.status === 'exited' && {
      ended_at: execution.endedAt?.toISOString(),
      exit_code: execution.exitCode,
    }),
    output_source: 'volatile_guest_files',
  };
}

function sendFailure(response: ServerResponse, failure: GuestFailure): void {
  sendJson(response, 409, failure);
}

/** The JSON of a foreground command, its output encoded piece by piece. */
async function sendOutput(response: ServerResponse, result: ExecResult): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  const write = async (text: string) => {
    if (!response.write(text)) await once(response, 'drain');
  };
  await write(`{"exit_code":${result.exitCode},"timed_out":${result.timedOut},"stdout_b64":"`);
  await writeBase64(result.stdout, write);
  await write('","stderr_b64":"');
  await writeBase64(result.stderr, write);
  response.end(`","out_truncated":${result.outTruncated},"err_truncated":${result.errTruncated}}`);
}

/** Three bytes make four characters, so pieces are cut at multiples of three. */
async function writeBase64(
  bytes: AsyncIterable<Buffer>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of bytes) {
    const whole = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const cut = whole.length - (whole.length % 3);
    await write(whole.toString('base64', 0, cut));
    rest = Buffer.from(whole.subarray(cut));
  }
  await write(rest.toString('base64'));
}

/** One range of the three forms; anything else is no range, as HTTP has it. */
function readRange(header: string | undefined): FileRange | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (match === null) return null;
  const [first, last] = [match[1] ?? '', match[2] ?? ''];
  if (first === '') return last === '' ? null : { suffix: bounded(last) };
  if (last !== '' && Number(last) < Number(first)) return null;
  return { first: bounded(first), last: last === '' ? null : bounded(last) };
}

function bounded(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
}

/** The file's own name as far as a header can carry it. */
function safeName(path: string): string {
  return basename(path).replaceAll(/[^\x20-\x7e]|["\\]/g, '_') || 'file';
}
