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
        answering(async (operator) => operator.rotateKeyring(await presentKeyring())),
      ),
    )
    .addCommand(
      verb('adopt', 'Take this keyring for the service’s own, in place of one that is lost.')
        .option('--yes', 'do it: secrets of the lost keyring stay shut until they are replaced')
        .action(
          answering(async (operator, { yes }: { yes?: true }) => {
            if (yes !== true) {
              throw new OperatorMistake(
                'Secrets that another keyring encrypted can then only be replaced. Say --yes to do it.',
              );
            }
            return operator.adoptKeyring(await presentKeyring());
          }),
        ),
    );
}

/** One that exists: a command makes none, least of all by a slip in its path. */
async function presentKeyring(): Promise<Keyring> {
  const { keyring } = readSettings(process.env, checkout);
  if (!existsSync(keyring)) {
    throw new OperatorMistake(`There is no keyring at ${keyring}; see CUBICLE_KEYRING.`);
  }
  return Keyring.open(keyring);
}
