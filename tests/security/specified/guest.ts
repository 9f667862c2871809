// Calls into a running computer, and what its host saw of it: wire-guest sections 3, 4 and 9, wire-computers
// section 11, Part 8.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { newName } from '../callers.ts';
import { type Specified, usual } from './shape.ts';

const call = { ...usual, role: 'member', cost: 5 } as const;
const path = (of: string) => `?path=${encodeURIComponent(of)}`;

export const guestOperations: Record<string, Specified> = {
  execute: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/exec',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running },
          json: { command: 'exit 3' },
          changes: [],
          proves: ({ body }) => assert.equal(body.exit_code, 3),
        }),
      },
    ],
  },
  pollExec: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/exec/{pid}',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running, pid: shared.ended.pid },
          changes: [],
          proves: ({ body }) => assert.equal(body.running, false),
        }),
      },
    ],
  },
  killExec: {
    ...call,
    method: 'DELETE',
    path: '/computers/{id}/exec/{pid}',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running, pid: (await shared.begin('sleep 1000')).pid },
          changes: [],
          proves: ({ body }) => assert.equal(body.killed, true),
        }),
      },
    ],
  },
  getExecution: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/executions/{execution}',
    role: 'viewer',
    cost: 1,
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running, execution: shared.ended.execution },
          changes: [],
          proves: ({ body }) => assert.equal(body.status, 'exited'),
        }),
      },
    ],
  },
  getExecutionOutput: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/executions/{execution}/output',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running, execution: shared.ended.execution },
          query: '?stdout_offset=0&stderr_offset=0',
          changes: [],
          proves: ({ body }) => assert.equal(body.execution_id, shared.ended.execution),
        }),
      },
    ],
  },
  listSignals: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/signals',
    role: 'viewer',
    cost: 1,
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running },
          changes: [],
          proves: ({ body }) => assert.equal(body.baseline, true),
        }),
      },
    ],
  },
  readFile: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/files',
    cost: 10,
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running },
          query: path(shared.file),
          changes: [],
          proves: ({ text }) => assert.equal(text, 'content'),
        }),
      },
    ],
  },
  writeFile: {
    ...call,
    method: 'PUT',
    path: '/computers/{id}/files',
    cost: 10,
    calls: [
      {
        async prepare({ world: { shared } }) {
          const to = `${shared.file} ${newName()}`;
          return {
            parameters: { id: shared.running },
            query: path(to),
            raw: 'written',
            changes: [],
            proves: async () => assert.equal(await readFile(to, 'utf8'), 'written'),
          };
        },
      },
    ],
  },
  listFiles: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/files/list',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.running },
          query: path(shared.folder),
          changes: [],
          proves: ({ body }) => assert.equal(body.path, shared.folder),
        }),
      },
    ],
  },
};
