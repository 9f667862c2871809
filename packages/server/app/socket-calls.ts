// Opens admitted sockets at the hosts of their computers.

import { Refusal } from '@cubicle/contract/errors.ts';
import { accountHeader, controlHeader, hostPaths } from '@cubicle/contract/host/api.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host, HostStream } from '../hosts/host.ts';
import { refusalFrom } from './guest-failures.ts';
import type { Admitted } from './sockets.ts';

/** What a caller said to open a WebSocket, as far as the host needs it. */
export interface Handshake {
  readonly headers: Readonly<Record<string, string>>;
  /** Without the credential. */
  readonly query: string;
}

const openMs = 15_000;

export class SocketCalls {
  readonly #fleet: Fleet;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** The host's half, upgraded; a refusal of its own is thrown in our words. */
  async open(
    { claim, kind, grant }: Admitted,
    { headers, query }: Handshake,
    signal: AbortSignal,
  ): Promise<HostStream> {
    const control: Record<string, string> = {
      ...(claim.surface === 'control' && { [controlHeader]: '1' }),
      [accountHeader]: grant.account_id,
    };
    const path = `${hostPaths.socket(claim.computerId, kind)}?${query}`;
    const answer = await this.#asking(grant.host_id, (host) =>
      host.upgrade({ path, headers: { ...headers, ...control }, timeoutMs: openMs, signal }),
    );
    if ('head' in answer) return answer;
    const refusal = await refusalFrom(answer);
    throw refusal.error === 'computer_suspended_here' ? suspended() : refusal;
  }

  /** Throws what an attempt to open it would be refused with, as far as that can be told beforehand. */
  async look({ claim, grant }: Admitted): Promise<void> {
    const told = await this.#asking(grant.host_id, (host) => host.computer(claim.computerId));
    if (told?.status === 'suspended') throw suspended();
    if (told?.status !== 'running') throw new Refusal('computer_not_running');
    if (!told.ready) throw new Refusal('desktop_absent');
  }

  async #asking<Answer>(hostId: string, ask: (host: Host) => Promise<Answer>): Promise<Answer> {
    try {
      return await ask(await this.#fleet.host(hostId));
    } catch (cause) {
      throw Object.assign(new Refusal('host_unreachable'), { cause });
    }
  }
}

/** Part 6.2: it is not resumed for this, and the caller is told what would help. */
function suspended(): Refusal {
  return new Refusal('computer_suspended_here', {}, { resume_required: true });
}
