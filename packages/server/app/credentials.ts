// The credentials in a computer's URLs: derived, not stored. A MAC over the computer, what it opens and
// how often its credentials were changed, so that changing them once more ends all that were given out.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { basePath } from '@cubicle/contract/routes.ts';
import type { Role } from '@cubicle/contract/route.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';

export type Surface = 'control' | 'view';

export class Credentials {
  readonly #secret: Buffer;
  readonly #origin: string;

  /** `origin` is that of the public URL; sockets use the same host. */
  constructor(secret: Buffer, origin: string) {
    this.#secret = secret;
    this.#origin = origin;
  }

  token(computer: { id: string; rotation: number }, surface: Surface): string {
    const mac = createHmac('sha256', this.#secret);
    return mac.update(`${computer.id}\n${surface}\n${computer.rotation}`).digest('hex');
  }

  opens(computer: { id: string; rotation: number }, surface: Surface, given: string): boolean {
    const [right, asked] = [Buffer.from(this.token(computer, surface)), Buffer.from(given)];
    return right.length === asked.length && timingSafeEqual(right, asked);
  }

  /** The connect surface of a record: a viewer gets the watch-only part. */
  surface(
    computer: { id: string; rotation: number },
    role: Role,
  ): Pick<Computer, 'url' | 'events_url' | 'terminal_url' | 'vnc'> {
    const socket = `${this.#origin.replace(/^http/, 'ws')}${basePath}/computers/${computer.id}`;
    const viewToken = this.token(computer, 'view');
    const page = `${this.#origin}/embed/${computer.id}`;
    const watching = {
      view_url: `${socket}/vnc?token=${viewToken}`,
      view_token: viewToken,
      embed_url: `${page}#token=${viewToken}`,
    };
    if (role === 'viewer') return { vnc: { ...watching, clipboard: false } };
    const token = this.token(computer, 'control');
    const addresses = {
      url: `${socket}/vnc?token=${token}`,
      events_url: `${socket}/events?token=${token}`,
      terminal_url: `${socket}/terminal?token=${token}`,
    };
    return { ...addresses, vnc: { ...watching, ...addresses, token, clipboard: true } };
  }
}
