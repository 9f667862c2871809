import type { IncomingMessage } from 'node:http';
import { hostPaths } from '@cubicle/contract/host/api.ts';
import type { fileRoutes } from '@cubicle/contract/resources/files.ts';
import type { GuestCalls } from '../app/guest-calls.ts';
import type { Handlers } from './handler.ts';
import { Reply } from './reply.ts';

const passed = [
  'content-type',
  'content-length',
  'content-range',
  'accept-ranges',
  'content-disposition',
] as const;

function passOn(response: IncomingMessage): Reply {
  const headers: Record<string, string> = {};
  for (const name of passed) {
    const value = response.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  return new Reply({ status: response.statusCode ?? 200, headers, bytes: response });
}

const streamMs = 120_000;

export function fileHandlers(guest: GuestCalls): Handlers<typeof fileRoutes> {
  return {
    readFile: async ({ authority, parameters, query, range, signal }) => {
      const response = await guest.send(authority, parameters.id, {
        method: 'GET',
        path: (id) => `${hostPaths.files(id)}?${search({ path: query.path })}`,
        ...(range !== undefined && { headers: { range } }),
        timeoutMs: streamMs,
        signal,
        wakes: query.no_wake !== '1',
      });
      return passOn(response);
    },
    writeFile: async ({ authority, parameters, query, upload, signal }) => {
      const createOnly = query.overwrite === 'false' ? '1' : '0';
      const response = await guest.send(authority, parameters.id, {
        method: 'PUT',
        path: (id) =>
          `${hostPaths.files(id)}?${search({ path: query.path, create_only: createOnly })}`,
        ...(upload && { body: upload }),
        timeoutMs: streamMs,
        signal,
        wakes: query.no_wake !== '1',
      });
      return passOn(response);
    },
    listFiles: async ({ authority, parameters, query, signal }) => {
      const response = await guest.send(authority, parameters.id, {
        method: 'GET',
        path: (id) => `${hostPaths.fileList(id)}?${search({ path: query.path })}`,
        timeoutMs: 30_000,
        signal,
        wakes: false,
      });
      return passOn(response);
    },
  };
}

function search(values: Record<string, string>): string {
  return new URLSearchParams(values).toString();
}
