// The screen of a guest: a channel on which its VNC server speaks RFB.

import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { screenAnswer } from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Guest } from './guest.ts';
import { refusedCommand, type Result } from './result.ts';

/** Open until either side ends it; aborting the context gives it up. */
export async function screen(
  context: Context,
  guest: Guest,
): Promise<Result<{ readonly channel: Channel }>> {
  // Nothing is sent with the request, and the channel stays open for what follows.
  const asked = { op: 'screen' } as const;
  const result = await guest.ask(context, asked, screenAnswer, refusedCommand, async () => {});
  return result.ok ? { ok: true, channel: result.channel } : result;
}
