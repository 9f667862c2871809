import { Refusal } from '@cubicle/contract/errors.ts';
import { hostPaths } from '@cubicle/contract/host/api.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { execRoutes } from '@cubicle/contract/resources/exec.ts';
import type { GuestCalls } from '../app/guest-calls.ts';
import type { Handlers } from './handler.ts';
import { passOn } from './pass-on.ts';

const quickMs = 30_000;

export function execHandlers(guest: GuestCalls): Handlers<typeof execRoutes> {
  return {
    execute: async ({ authority, parameters, body, signal }) => {
      const timeoutS = body.timeout_s ?? 30;
      if (body.background !== true && timeoutS > limits.execTimeoutS) {
        throw new Refusal('exec_timeout_range');
      }
      const response = await guest.send(authority, parameters.id, {
        method: 'POST',
        path: hostPaths.exec,
        body: JSON.stringify({ ...body, timeout_s: timeoutS }),
        timeoutMs: body.background === true ? quickMs : timeoutS * 1_000 + quickMs,
        signal,
        wakes: true,
      });
      return passOn(response);
    },
    pollExec: async ({ authority, parameters: { id, pid }, signal }) => {
      const path = (computer: string) => hostPaths.execPoll(computer, knownPid(pid));
      const call = { method: 'GET', path, timeoutMs: quickMs, signal, wakes: false };
      return passOn(await guest.send(authority, id, call));
    },
    killExec: async ({ authority, parameters: { id, pid }, signal }) => {
      const path = (computer: string) => hostPaths.execPoll(computer, knownPid(pid));
      const call = { method: 'DELETE', path, timeoutMs: quickMs, signal, wakes: false };
      return passOn(await guest.send(authority, id, call));
    },
    getExecution: async ({ authority, parameters: { id, execution }, signal }) => {
      const path = (computer: string) => hostPaths.execution(computer, knownExecution(execution));
      const call = { method: 'GET', path, timeoutMs: quickMs, signal, wakes: false };
      return passOn(await guest.send(authority, id, call));
    },
    getExecutionOutput: async ({ authority, parameters: { id, execution }, query, signal }) => {
      const limit = Number(query.limit ?? 65_536);
      if (limit < 1 || limit > limits.execChunk) {
        throw new Refusal('query_refused', { problem: '`limit` must be from 1 to 1048576.' });
      }
      for (const name of ['stdout_offset', 'stderr_offset'] as const) {
        if (Number(query[name]) + limit <= Number.MAX_SAFE_INTEGER) continue;
        const problem = `\`${name}\` and the limit must be at most 2^53 - 1 together.`;
        throw new Refusal('query_refused', { problem });
      }
      const search = new URLSearchParams({ ...query, limit: String(limit) }).toString();
      const path = (computer: string) =>
        `${hostPaths.executionOutput(computer, knownExecution(execution))}?${search}`;
      const call = { method: 'GET', path, timeoutMs: quickMs, signal, wakes: false };
      return passOn(await guest.send(authority, id, call));
    },
  };
}

function knownPid(pid: string): string {
  if (!/^[1-9]\d{0,9}$/.test(pid)) throw new Refusal('execution_unknown');
  return pid;
}

function knownExecution(id: string): string {
  if (!isId('execution', id)) throw new Refusal('execution_unknown');
  return id;
}
