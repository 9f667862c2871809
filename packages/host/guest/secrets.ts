// Secrets into a guest: handed to its agent, and kept nowhere on the way.

import {
  encodeMessage,
  type SecretsBody,
  secretsAnswer,
} from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Guest } from './guest.ts';
import { failed, type Result } from './result.ts';

// What a guest says of it may be anything, so none of it is told.
const notTaken = failed('unsupported', 'The computer does not take its secrets.');

/** Returns when the guest has all of it in place. */
export async function deliverSecrets(
  context: Context,
  guest: Guest,
  body: SecretsBody,
): Promise<Result<object>> {
  const asked = { op: 'secrets' } as const;
  const result = await guest.ask(
    context,
    asked,
    secretsAnswer,
    () => notTaken,
    async (channel) => {
      if (await channel.send(0, encodeMessage(body))) channel.end();
    },
  );
  if (!result.ok) return result;
  guest.holds(body.serial);
  return { ok: true };
}
