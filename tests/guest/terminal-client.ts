// A terminal as its client sees it: an attachment joined to a socket that is only a buffer.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { TerminalFrame } from '../../packages/contract/terminal.ts';
import type { Attachment, Ends } from '../../packages/host/terminal/attachment.ts';
import type { TerminalRefusal } from '../../packages/host/terminal/refusals.ts';
import { Terminals } from '../../packages/host/terminal/terminals.ts';
import { until } from '../support/until.ts';
import { computer, context, Rig } from './rig.ts';

export class Client implements Ends {
  readonly attachment: Attachment;
  readonly frames: TerminalFrame[] = [];
  closed: { code: number; reason: string } | undefined;
  wasCut = false;
  /** While false, output is taken and no more is wanted. */
  reading = true;
  bytes = Buffer.alloc(0);

  constructor(attachment: Attachment, reading = true) {
    this.attachment = attachment;
    this.reading = reading;
    attachment.join(this);
  }

  output(bytes: Buffer): boolean {
    assert.equal(this.closed, undefined, 'output after the close');
    this.bytes = Buffer.concat([this.bytes, bytes]);
    return this.reading;
  }

  control(frame: TerminalFrame): void {
    assert.equal(this.closed, undefined, 'a frame after the close');
    this.frames.push(frame);
  }

  close(code: number, reason: string): void {
    assert.equal(this.closed, undefined, 'closed twice');
    assert.ok(Buffer.byteLength(reason) <= 123);
    this.closed = { code, reason };
  }

  cut(): void {
    this.wasCut = true;
  }

  get text(): string {
    return this.bytes.toString();
  }

  type(text: string): void {
    this.attachment.input(Buffer.from(text));
  }

  resume(): void {
    this.reading = true;
    this.attachment.drained();
  }

  /** Waits for it, and answers the match. */
  shows(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`the terminal shows ${pattern}`, () => pattern.exec(this.text) ?? undefined);
  }

  async ends(): Promise<TerminalFrame | undefined> {
    await until('it is closed', () => this.closed);
    return this.frames.at(-1);
  }

  /** A shell that edits no lines, prompts for none and echoes none: only what is asked for shows. */
  async calm(): Promise<void> {
    this.type('exec env PS1= PS2= bash --norc --noediting\n');
    this.type('stty -echo; echo ca""lm\n');
    await this.shows(/^calm\r\n/m);
    this.bytes = Buffer.alloc(0);
  }
}

export class TerminalRig {
  readonly rig: Rig;
  terminals: Terminals;
  state: 'running' | 'suspended' | 'not_running' = 'running';
  starting = false;

  constructor(rig: Rig) {
    this.rig = rig;
    this.terminals = this.newTerminals();
  }

  static async of(t: TestContext): Promise<TerminalRig> {
    return new TerminalRig(await Rig.of(t));
  }

  newTerminals(): Terminals {
    this.terminals = new Terminals(this.rig.links, {
      state: async () => this.state,
      starting: () => this.starting,
    });
    return this.terminals;
  }

  ask(session = 'main', cols = 80, rows = 24) {
    return this.terminals.attach(context, computer, { session, cols, rows });
  }

  async open(session = 'main', { reading = true, cols = 80, rows = 24 } = {}): Promise<Client> {
    const result = await this.ask(session, cols, rows);
    assert.ok(result.ok, JSON.stringify(result));
    return new Client(result.attachment, reading);
  }

  async refused(session = 'main'): Promise<TerminalRefusal> {
    const result = await this.ask(session);
    assert.ok(!result.ok, 'it should have been refused');
    return result;
  }
}
