// Where a webhook leads: its address as it is stored, and the network addresses that may be connected to.

import { isIP } from 'node:net';
import { limits } from '@cubicle/contract/limits.ts';
import { lookUp, type Lookup } from './names.ts';
import { mayReach, type Network } from './networks.ts';

export type AddressRefusal =
  | { readonly why: 'refused'; readonly problem: string }
  | { readonly why: 'unresolved'; readonly host: string };

export class AddressRefused extends Error {
  readonly refusal: AddressRefusal;

  constructor(refusal: AddressRefusal) {
    super(refusal.why === 'refused' ? refusal.problem : `${refusal.host} did not resolve`);
    this.refusal = refusal;
  }
}

export interface AddressCheckParts {
  /** Networks that the operator opened. */
  readonly opened?: readonly Network[];
  readonly lookUp?: Lookup;
}

/** What the caller waits for a name. */
const patienceMs = 8_000;

export class AddressCheck {
  readonly #opened: readonly Network[];
  readonly #lookUp: Lookup;

  constructor({ opened = [], lookUp: asked = lookUp }: AddressCheckParts = {}) {
    this.#opened = opened;
    this.#lookUp = asked;
  }

  /** Part 4, Webhooks 1: the address as it is stored. Throws AddressRefused. */
  async accept(sent: string): Promise<string> {
    const url = parsed(sent);
    await this.addresses(url, AbortSignal.timeout(patienceMs));
    return url.href;
  }

  /**
   * Every address of the host, looked up now, each of which may be connected to. One that may not refuses
   * them all: which of them a client takes is not for a receiver's name server to play with.
   */
  async addresses(url: URL, signal: AbortSignal): Promise<string[]> {
    // The parser has already read decimal, octal and hexadecimal spellings.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const found = isIP(host) === 0 ? await this.#lookUp(host, signal) : [host];
    if (found.length === 0) throw new AddressRefused({ why: 'unresolved', host });
    if (!found.every((address) => mayReach(address, this.#opened))) {
      throw refused('`url` must lead to public addresses alone.');
    }
    return found;
  }
}

function parsed(sent: string): URL {
  if (sent.length > limits.webhookUrl) {
    throw refused(`\`url\` must have at most ${limits.webhookUrl} characters.`);
  }
  if (!URL.canParse(sent)) throw refused('`url` must be an https address.');
  const url = new URL(sent);
  if (url.protocol !== 'https:') throw refused('`url` must be an https address.');
  if (url.username !== '' || url.password !== '') {
    throw refused('`url` must have no user name and no password.');
  }
  return url;
}

function refused(problem: string): AddressRefused {
  return new AddressRefused({ why: 'refused', problem });
}
