// Proxies of computers and of the browsers in them: wire-computers section 6, wire-account sections 1 and 3.

import { z } from 'zod';
import { idPattern } from './ids.ts';

/** A server that speaks one of these, without anybody's name or password in its address. */
const server = (...schemes: readonly string[]) =>
  z
    .string()
    .max(300)
    .regex(
      new RegExp(`^(${schemes.join('|')})://(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+):\\d{1,5}$`),
      {
        error: `must be ${schemes.slice(0, -1).join(', ')} or ${schemes.at(-1)}, \`://\`, a host and a port`,
      },
    );

const credentials = z
  .string()
  .regex(idPattern('secret'), {
    error: 'must be the id of a secret, `csec-` and 16 hex digits',
  })
  .describe('A secret whose value is `user:password`.');

export const browserProxy = z.strictObject({
  server: server('http', 'https', 'socks4', 'socks5'),
  bypass: z
    .array(z.string().min(1).max(255))
    .max(100)
    .optional()
    .describe('What is reached directly: hosts, `*.host`, addresses, networks, `<local>`.'),
  credentials_secret_id: credentials.optional(),
});

export const egressProxy = z.strictObject({
  server: server('http', 'https', 'socks5'),
  credentials_secret_id: credentials.optional(),
});
