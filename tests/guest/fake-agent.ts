// An agent that says whatever a test wants, byte by byte.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import {
  type Frame,
  FrameDecoder,
  frameHeader,
  type FrameType,
} from '../../packages/contract/guest/frames.ts';
import { guestProtocol } from '../../packages/contract/guest/sizes.ts';
import { until } from '../support/until.ts';
import { computer, type Rig } from './rig.ts';

export const greeting = {
  protocol: guestProtocol,
  boot_id: 'boot',
  agent_id: 'a'.repeat(32),
  desktop_ready: true,
  secrets: 0,
  running: [] as string[],
  exited: [] as { id: string; exit_code: number }[],
};

export class FakeAgent {
  readonly socket: Socket;
  /** What the host said, in order. */
  readonly heard: Frame[] = [];

  constructor(path: string) {
    this.socket = createConnection(path);
    this.socket.on('error', () => {});
    const decoder = new FrameDecoder('host');
    this.socket.on('data', (chunk: Buffer) =>
      decoder.push(chunk, (frame) => this.heard.push(frame)),
    );
  }

  /** Connected, and greeted unless told otherwise. */
  static async of(rig: Rig, { greet = true } = {}): Promise<FakeAgent> {
    const agent = new FakeAgent(rig.at('link', 'agent.sock'));
    await once(agent.socket, 'connect');
    if (greet) {
      agent.say('hello', 0, greeting);
      await until('the host greets', () => agent.heard.length > 0 && rig.links.connected(computer));
    }
    return agent;
  }

  say(
    type: FrameType,
    channel = 0,
    payload: object | Uint8Array = Buffer.alloc(0),
    stream = 0,
  ): void {
    const bytes = payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload));
    this.socket.write(frameHeader(type, channel, stream, bytes.length));
    this.socket.write(bytes);
  }

  /** The channel of the next request. */
  async asked(count = 1): Promise<number> {
    return until('the host asks', () => {
      const opened = this.heard.filter(({ type }) => type === 'open');
      return opened[count - 1]?.channel;
    });
  }

  get closed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded;
  }

  async ended(): Promise<void> {
    await until('the host has hung up', () => this.closed);
  }
}
