import { hostPaths } from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { signalRoutes } from '@cubicle/contract/resources/signals.ts';
import type { GuestCalls } from '../app/guest-calls.ts';
import type { Handlers } from './handler.ts';
import { passOn } from './pass-on.ts';

const answerMs = 10_000;

export function signalHandlers(guest: GuestCalls): Handlers<typeof signalRoutes> {
  return {
    listSignals: async ({ authority, parameters, query, signal }) => {
      const { since = '', limit = String(limits.signalsDefault) } = query;
      const path = (computer: string) =>
        `${hostPaths.signals(computer)}?${new URLSearchParams({ since, limit }).toString()}`;
      const call = { method: 'GET', path, timeoutMs: answerMs, signal, wakes: false };
      return passOn(await guest.send(authority, parameters.id, call));
    },
  };
}
