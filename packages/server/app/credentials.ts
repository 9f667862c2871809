// The credentials in a computer's URLs: derived, not stored. Each names the API key it was given to and how
// often the computer's credentials were changed, under a MAC: what it opens ends with either of the two.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { basePath } from '@cubicle/contract/routes.ts';
import type { Role } from '@cubicle/contract/route.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';

export type Surface = 'control' | 'view';

/** What a credential that we made says. Whether it still holds is for the store to tell. */
export interface Claim {
  readonly computerId: string;
  readonly keyId: string;
  readonly rotation: number;
  readonly surface: Surface;
}

const form = /^(key-[0-9a-f]{12})\.(\d{1,10})\.([0-9a-f]{64})$/;

export class Credentials {
  readonly #secret: Buffer;
  readonly #origin: string;

  /** `origin` is that of the public URL; sockets use the same host. */
  constructor(secret: Buffer, origin: string) {
    this.#secret = secret;
    this.#origin = origin;
  }

  token({ computerId, keyId, rotation, surface }: Claim): string {
    const mac = createHmac('sha256', this.#secret);
    mac.update(`${computerId}\n${surface}\n${rotation}\n${keyId}`);
    return `${keyId}.${rotation}.${mac.digest('hex')}`;
  }

  /** What this computer's credential claims; undefined for one that we never made. */
  claim(computerId: string, given: string): Claim | undefined {
    const [, keyId = '', rotation = '0'] = form.exec(given) ?? [];
    const claims = (['control', 'view'] as const).map((surface) => ({
      computerId,
      keyId,
      rotation: Number(rotation),
      surface,
    }));
    // Both are always compared, and neither at a speed that tells how much of it was right.
    return claims.filter((claim) => same(this.token(claim), given))[0];
  }

  /** The connect surface of a record: a viewer gets the watch-only part. */
  surface(
    computer: { id: string; rotation: number },
    { role, keyId }: { role: Role; keyId: string },
  ): Pick<Computer, 'url' | 'events_url' | 'terminal_url' | 'vnc'> {
    const given = { computerId: computer.id, rotation: computer.rotation, keyId };
    const socket = `${this.#origin.replace(/^http/, 'ws')}${basePath}/computers/${computer.id}`;
    const viewToken = this.token({ ...given, surface: 'view' });
    const page = `${this.#origin}/embed/${computer.id}`;
    const watching = {
      view_url: `${socket}/vnc?token=${viewToken}`,
      view_token: viewToken,
      embed_url: `${page}#token=${viewToken}`,
    };
    if (role === 'viewer') return { vnc: { ...watching, clipboard: false } };
    const token = this.token({ ...given, surface: 'control' });
    const addresses = {
      url: `${socket}/vnc?token=${token}`,
      events_url: `${socket}/events?token=${token}`,
      terminal_url: `${socket}/terminal?token=${token}`,
    };
    return { ...addresses, vnc: { ...watching, ...addresses, token, clipboard: true } };
  }
}

function same(right: string, given: string): boolean {
  const [a, b] = [Buffer.from(right), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}
