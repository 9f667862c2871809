// Which computer the page is of, and with what right: from its address, whose fragment no server sees.

import { basePath } from './wire.ts';

export interface Place {
  readonly computer: string;
  readonly token: string;
  /** False on the page that only watches. */
  readonly control: boolean;
}

export function placeOf({ pathname, hash }: Location): Place {
  const [, page, computer = ''] = pathname.split('/');
  const token = new URLSearchParams(hash.slice(1)).get('token') ?? '';
  return { computer, token, control: page === 'desktop' };
}

/** The address of one of the computer's sockets; the only request line that ever holds the credential. */
export function socketUrl({ computer, token }: Place, name: 'vnc' | 'events' | 'terminal'): string {
  const url = new URL(`${basePath}/computers/${computer}/${name}`, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  url.hash = '';
  url.searchParams.set('token', token);
  return url.href;
}
