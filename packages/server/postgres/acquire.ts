/** Comes to terms with the server of a data folder: starts it, adopts it, shares it or gives up. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, ensureDatabase, judgeFailure, type Session } from './connect.ts';
import { serviceOwns, takeOwnerLock, tryConnect } from './connect.ts';
import { logFile, type Postmaster, type Site, startPostmaster } from './postmaster.ts';
import { prepareSocketFolder } from './socket-folder.ts';

/** How long a server may stay without an answer, and how long a crash recovery may take. */
const patienceMs = { silent: 30_000, busy: 120_000 };
const firstWordMs = 3_000;
const betweenWordsMs = 5_000;
const pollMs = 50;
const mostFailedStarts = 3;

export interface Terms {
  readonly role: 'service' | 'command';
  readonly waitMs: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** The server process that we started, as long as it is ours to end. */
export interface Seat {
  started?: Postmaster | undefined;
  /** It has taken a connection: its end is a crash and no failed start. */
  proven?: boolean;
}

/** Returns the session that holds the owner's lock, or undefined when the server is shared. */
export async function acquire(site: Site, seat: Seat, terms: Terms): Promise<Session | undefined> {
  const patience = new Patience(site, terms.say);
  let takenUntil: number | undefined;
  let failedStarts = 0;
  for (;;) {
    terms.signal.throwIfAborted();
    await prepareSocketFolder(site.socket, site.cluster.identity);
    const answer = await approach(site, terms.role);
    if (answer.kind === 'owned') {
      seat.proven = true;
      return answer.session;
    }
    if (answer.kind === 'shared') {
      seat.started = undefined;
      return undefined;
    }
    if (answer.kind === 'taken') {
      takenUntil ??= Date.now() + terms.waitMs;
      if (Date.now() >= takenUntil) {
        seat.started = undefined;
        throw new Error(
          terms.role === 'service'
            ? `Another Cubicle service is using the data folder ${site.dataDir}; give this one its own CUBICLE_DATA, or one DATABASE_URL for both.`
            : `Another command is using the data folder ${site.dataDir}; try again when it has ended.`,
        );
      }
    } else {
      if (answer.kind === 'silent' && !seat.started?.running()) {
        if (await startFailed(seat)) failedStarts += 1;
        if (failedStarts >= mostFailedStarts) throw await startError(site, seat);
        seat.started = await startPostmaster(site);
        seat.proven = false;
      }
      await patience.spend(answer, seat);
    }
    await pause(pollMs, undefined, { signal: terms.signal });
  }
}

type Standing =
  | { kind: 'owned'; session: Session }
  | { kind: 'shared' }
  | { kind: 'taken' }
  | Exclude<Answer, { kind: 'ready' }>;

async function approach(site: Site, role: Terms['role']): Promise<Standing> {
  const answer = await tryConnect(site.socket.path, role);
  if (answer.kind !== 'ready') return answer;
  const { client } = answer.session;
  try {
    const owned = await takeOwnerLock(client);
    const shared = !owned && role === 'command' && (await serviceOwns(client));
    if (owned || shared) await ensureDatabase(client);
    if (owned) return { kind: 'owned', session: answer.session };
    await client.end();
    return { kind: shared ? 'shared' : 'taken' };
  } catch (error) {
    void client.end().catch(() => {});
    return judgeFailure(error);
  }
}

/**
 * A server that another one kept from starting is no failure: the other one answers soon, or it is
 * dead and only its last backends still hold the shared memory.
 */
async function startFailed({ started, proven }: Seat): Promise<boolean> {
  if (started === undefined || proven) return false;
  return !/lock file|shared memory block/.test(await started.output());
}

async function startError(site: Site, { started }: Seat): Promise<Error> {
  const lines = ((await started?.output()) ?? '').trim().split('\n');
  const reason = lines.findLast((line) => /FATAL:(?!.*starting up)/.test(line)) ?? lines.at(-1);
  return new Error(`PostgreSQL could not start: ${reason}; the whole log is ${logFile(site)}`);
}

/** Counts how long the server is in one state, tells the person about it, and ends the wait. */
class Patience {
  readonly #site: Site;
  readonly #say: Terms['say'];
  #kind = '';
  #since = 0;
  #nextWord = 0;

  constructor(site: Site, say: Terms['say']) {
    this.#site = site;
    this.#say = say;
  }

  async spend(answer: Exclude<Answer, { kind: 'ready' }>, seat: Seat): Promise<void> {
    const now = Date.now();
    if (answer.kind !== this.#kind) {
      this.#kind = answer.kind;
      this.#since = now;
      this.#nextWord = now + firstWordMs;
    }
    const reason = answer.kind === 'busy' ? answer.reason : 'the server does not answer yet';
    if (now - this.#since > patienceMs[answer.kind]) {
      if (answer.kind === 'silent' && seat.started && !seat.started.running()) {
        throw await startError(this.#site, seat);
      }
      throw new Error(
        `The database does not become ready: ${reason}; its log is ${logFile(this.#site)}`,
      );
    }
    if (now >= this.#nextWord) {
      this.#nextWord = now + betweenWordsMs;
      this.#say(`Waiting for the database: ${reason}`);
    }
  }
}
