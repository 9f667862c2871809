// `cubicle admin host`: the machines that run computers.

import type { Command } from 'commander';
import { OperatorMistake } from '@cubicle/server/app/operator.ts';
import { readSettings } from '@cubicle/server/settings.ts';
import { answering, group, verb } from './admin-verbs.ts';
import { checkout } from './checkout.ts';

export function hostsCommand(): Command {
  return group('host')
    .description('The machines that run computers.')
    .addCommand(
      verb('list', 'List the hosts and what they have for computers.').action(
        answering(async (operator) => ({ hosts: await operator.listHosts() })),
      ),
    )
    .addCommand(
      verb('retire', 'Give up a host that will not come back; its computers count as deleted.')
        .argument('<id>')
        .action(answering((operator, _options, id: string) => operator.retireHost(id))),
    )
    .addCommand(
      verb('purge', 'Delete every computer of this machine and all that runs them.')
        .option('--yes', 'do it: what is on their disks is lost')
        .action(
          answering(async (operator, { yes }: { yes?: true }) => {
            if (yes !== true) {
              throw new OperatorMistake(
                'This deletes every computer of this machine, with its disk. Say --yes to do it.',
              );
            }
            const { dataDir } = readSettings(process.env, checkout);
            const { purgeHost } = await import('@cubicle/host/purge.ts');
            const id = await purgeHost(dataDir, (line) => console.error(line));
            // One that this control plane never heard of has no computers to count as deleted.
            const known = (await operator.listHosts()).some((host) => host.id === id);
            return id !== undefined && known ? operator.retireHost(id) : { purged: true };
          }),
        ),
    );
}
