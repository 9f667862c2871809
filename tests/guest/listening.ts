// A computer whose events are heard: the host's side of events over a rig, and readers of its streams.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import {
  Events,
  type StreamRequest,
  type Subscription,
} from '../../packages/host/events/events.ts';
import type { StreamSocket } from '../../packages/host/events/subscriber.ts';
import type { Clock } from '../../packages/host/guest/executions.ts';
import { Roster } from '../../packages/host/roster.ts';
import { until } from '../support/until.ts';
import { computer, Rig } from './rig.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests look into frames of any shape
export type Frame = any;

export class Reader implements StreamSocket {
  readonly frames: Frame[] = [];
  /** As it came. */
  readonly texts: string[] = [];
  closed: string | undefined;
  full = false;
  subscription: Subscription | undefined;

  send(text: string): boolean {
    this.texts.push(text);
    this.frames.push(JSON.parse(text));
    return !this.full;
  }

  close(detail: string): void {
    this.closed = detail;
  }

  drain(): void {
    this.full = false;
    this.subscription?.drained();
  }

  get hello(): Frame {
    return this.frames[0];
  }

  /** Events, without control frames. */
  get events(): Frame[] {
    return this.frames.filter(({ seq }) => seq !== undefined);
  }

  /** The data of its events of this type. */
  data(type: string): Frame[] {
    return this.events.filter((frame) => frame.type === type).map(({ data }) => data);
  }

  get cursor(): string {
    return this.frames.findLast(({ cursor }) => cursor !== undefined).cursor;
  }
}

export class Listening {
  readonly rig: Rig;
  readonly roster = new Roster();
  readonly events: Events;

  private constructor(rig: Rig, events: (parts: Listening) => Events) {
    this.rig = rig;
    this.events = events(this);
    this.roster.add(computer, computer, 'running');
    this.events.found(computer, 'running');
  }

  static async of(
    t: TestContext,
    { agent = true, clock }: { readonly agent?: boolean; readonly clock?: Clock } = {},
  ): Promise<Listening> {
    const heard: Parameters<Events['heard']>[] = [];
    let tell = (...news: Parameters<Events['heard']>): void => void heard.push(news);
    const rig = await Rig.of(t, { agent: false, tell: (...news) => tell(...news) });
    const links: ConstructorParameters<typeof Events>[0]['links'] = {
      whenConnected: (...asked) => rig.links.whenConnected(...asked),
      watchTree: (...asked) => rig.links.watchTree(...asked),
      ready: (...asked) => rig.links.ready(...asked),
    };
    const listening = new Listening(
      rig,
      ({ roster }) => new Events({ roster, links, ...(clock && { clock }) }),
    );
    t.after(() => listening.events.stop());
    tell = (...news) => listening.events.heard(...news);
    if (agent) await rig.startAgent();
    return listening;
  }

  /** An open stream that has begun. */
  open(wish: Partial<StreamRequest> = {}): Reader {
    const reader = new Reader();
    const request = { computer, account: 'acc-1', watches: [], ...wish };
    const subscribed = this.events.subscribe(request, reader);
    assert.ok(subscribed.ok, JSON.stringify(subscribed));
    reader.subscription = subscribed.subscription;
    reader.subscription.begin();
    return reader;
  }

  /** Why a stream is not opened. */
  refused(wish: Partial<StreamRequest> = {}): string {
    const request = { computer, account: 'acc-1', watches: [], ...wish };
    const subscribed = this.events.subscribe(request, new Reader());
    assert.ok(!subscribed.ok, 'it should have been refused');
    return subscribed.refusal.why;
  }

  /** A stream that watches these trees, each of them armed. */
  async watching(...trees: string[]): Promise<Reader> {
    const reader = this.open({ watches: trees });
    await until('every tree is armed', () =>
      trees.every((tree) => armed(reader, tree) || isArmed(reader, tree)),
    );
    return reader;
  }
}

export function armed(reader: Reader, tree: string): boolean {
  return reader.data('file.changed').some((data) => data.watch === tree && data.armed === true);
}

function isArmed({ hello }: Reader, tree: string): boolean {
  return hello.watching.some((each: Frame) => each.path === tree && each.armed);
}

/** The changes told so far as `kind path`, without those of this kind of path. */
export function changes(reader: Reader): string[] {
  return reader
    .data('file.changed')
    .filter(({ path }) => path !== undefined)
    .map(({ kind, path, dir }) => `${kind} ${path}${dir === true ? '/' : ''}`);
}
