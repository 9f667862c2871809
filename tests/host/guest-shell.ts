/**
 * Runs a shell's line in a guest as its root. Incus keeps the output in files: by its sockets, as its own
 * command line asks for it, the output of a short command is lost now and then.
 */
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import type { Place } from '../../packages/host/engine/incus/place.ts';
import { live } from './engine-suite.ts';

export interface Finished {
  readonly code: number;
  /** With what it wrote to its error output, where it failed. */
  readonly output: string;
}

export async function execIn(place: Place, id: string, script: string): Promise<Finished> {
  const client = new IncusClient({ kind: 'unix', path: place.socket });
  try {
    const told = await client.change(live, 'POST', `/1.0/instances/${id}/exec`, {
      command: ['sh', '-c', script],
      environment: { HOME: '/root', USER: 'root' },
      'record-output': true,
    });
    const kept = told['output'] as { 1: string; 2: string };
    const code = Number(told['return']);
    const [output, errors] = [await take(place, kept[1]), await take(place, kept[2])];
    return { code, output: code === 0 ? output : `${output}${errors}` };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { code: 255, output: error.message };
  } finally {
    client.close();
  }
}

async function take(place: Place, path: string): Promise<string> {
  const output = await ask(place, 'GET', path);
  await ask(place, 'DELETE', path);
  return output;
}

async function ask(place: Place, method: string, path: string): Promise<string> {
  const request = http.request({ socketPath: place.socket, method, path, agent: false }).end();
  const answered = once(request, 'response');
  // Whoever reads the answer is told of its end, too.
  request.on('error', () => {});
  const [response] = (await answered) as [IncomingMessage];
  const told = await text(response);
  if (response.statusCode !== 200) throw new Error(told);
  return told;
}
