// `cubicle admin keyring`: the keys that secrets are encrypted with.

import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { OperatorMistake } from '@cubicle/server/app/operator.ts';
import { Keyring } from '@cubicle/server/keyring.ts';
import { readSettings } from '@cubicle/server/settings.ts';
import { answering, group, verb } from './admin-verbs.ts';
import { checkout } from './checkout.ts';

export function keyringCommand(): Command {
  return group('keyring')
    .description('The keys that secrets are encrypted with.')
    .addCommand(
      verb('rotate', 'Add a key and encrypt every stored secret anew with it.').action(
        answering(async (operator) => {
          const { keyring } = readSettings(process.env, checkout);
          if (!existsSync(keyring)) {
            throw new OperatorMistake(`There is no keyring at ${keyring}; see CUBICLE_KEYRING.`);
          }
          return operator.rotateKeyring(await Keyring.open(keyring));
        }),
      ),
    );
}
