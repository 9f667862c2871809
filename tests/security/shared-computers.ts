// The computers that the callers of one world share: one that runs, with an agent that answers, and one
// that is stopped. They are in the workspace that every caller sees.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import type { TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

export interface Shared {
  readonly running: string;
  readonly stopped: string;
  /** The one that made the stopped one. */
  readonly operation: string;
  readonly folder: string;
  readonly file: string;
  /** A background command that has ended. */
  readonly ended: Begun;
  begin(command: string): Promise<Begun>;
}

interface Begun {
  readonly pid: string;
  readonly execution: string;
}

/** For worlds in which nobody gets as far as a computer. */
export const noComputers: Shared = {
  running: 'vm-000000000000',
  stopped: 'vm-000000000001',
  operation: `op_${'0'.repeat(24)}`,
  folder: '/',
  file: '/file',
  ended: { pid: '1', execution: `exec_${'0'.repeat(32)}` },
  begin: async () => noComputers.ended,
};

export async function sharedComputers(
  service: TestService,
  owner: { readonly accountId: string; readonly raw: string; readonly home: string },
): Promise<Shared> {
  const { host, database } = service;
  const wish = { account_id: owner.accountId, workspace_id: owner.home };
  const running = await host.give(database, { ...wish, start: true });
  const made = await service
    .as(owner.raw)
    .post('/computers', { cpu: 1, ram_mb: 512, start: false, workspace_id: owner.home });
  assert.equal(made.status, 201, made.text);
  const agent = await host.agentOf(running);
  const folder = agent.at('shared');
  await mkdir(folder);
  await writeFile(agent.at('file'), 'content');

  const begin = async (command: string): Promise<Begun> => {
    const path = `/computers/${running}/exec`;
    const body = JSON.stringify({ command, background: true, timeout_s: 1 });
    const response = await host.near.send({ method: 'POST', path, body, timeoutMs: 30_000 });
    const { pid, execution_id } = JSON.parse(Buffer.concat(await response.toArray()).toString());
    return { pid: String(pid), execution: execution_id };
  };
  const ended = await begin('true');
  await until('the command has ended', async () => {
    const path = `/computers/${running}/executions/${ended.execution}`;
    const response = await host.near.send({ method: 'GET', path, timeoutMs: 30_000 });
    return Buffer.concat(await response.toArray()).includes('"exited"');
  });
  const { id: stopped, operation_id: operation } = made.body;
  return { running, stopped, operation, folder, file: agent.at('file'), ended, begin };
}
