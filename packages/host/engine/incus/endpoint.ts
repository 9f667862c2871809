/** Where an Incus listens: the unix socket of our own, or one that the operator names. */
import { readFileSync } from 'node:fs';

export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'https'; readonly url: string; readonly tls: Tls };

interface Tls {
  readonly cert: string;
  readonly key: string;
  /** Incus signs its own certificate: the one that is shown must be this one. */
  readonly ca: string;
  readonly checkServerIdentity: () => undefined;
}

/**
 * Reads CUBICLE_INCUS: `unix:/path/of/unix.socket`, or `https://address:8443` with the PEM files
 * CUBICLE_INCUS_CERT, CUBICLE_INCUS_KEY (ours, trusted by it) and CUBICLE_INCUS_SERVER_CERT (its own).
 * Undefined means that Cubicle runs its own. Guests see folders of this machine, so it must be here.
 */
export function readEndpoint(env: NodeJS.ProcessEnv): Endpoint | undefined {
  const value = env['CUBICLE_INCUS']?.trim();
  if (value === undefined || value === '') return undefined;
  if (value.startsWith('unix:/')) return { kind: 'unix', path: value.slice('unix:'.length) };
  if (!URL.canParse(value) || new URL(value).protocol !== 'https:') {
    throw new Error(
      `CUBICLE_INCUS must be unix:/path/of/the/socket or https://address:port, not "${value}".`,
    );
  }
  return {
    kind: 'https',
    url: new URL(value).origin,
    tls: {
      cert: readPem(env, 'CUBICLE_INCUS_CERT'),
      key: readPem(env, 'CUBICLE_INCUS_KEY'),
      ca: readPem(env, 'CUBICLE_INCUS_SERVER_CERT'),
      // The certificate itself is pinned; the names in it are those of its first start.
      checkServerIdentity: () => undefined,
    },
  };
}

function readPem(env: NodeJS.ProcessEnv, name: string): string {
  const file = env[name]?.trim();
  if (file === undefined || file === '') {
    throw new Error(`CUBICLE_INCUS is an https address, so ${name} must name a PEM file.`);
  }
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Error(`${name} names ${file}, which cannot be read.`, { cause });
  }
}
