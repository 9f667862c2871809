import type { accountRoutes } from '@cubicle/contract/resources/account.ts';
import type { Account } from '../app/account.ts';
import type { Handlers } from './handler.ts';

export function accountHandlers(account: Account): Handlers<typeof accountRoutes> {
  return {
    getAccount: ({ authority }) => account.quota(authority),
  };
}
