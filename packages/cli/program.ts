// The words of the `cubicle` command. What each needs is loaded when it is said.

import { Command } from 'commander';
import { adminCommand } from './admin.ts';

export const program = new Command('cubicle')
  .description('A self-hosted service of full computers with a desktop.')
  .addCommand(
    new Command('start')
      .description('Run the service, with a host for computers.')
      .action(async () => (await import('./start.ts')).start()),
  )
  .addCommand(
    new Command('host')
      .description('Run a host for computers alone.')
      .action(async () => (await import('./host.ts')).runHost()),
  )
  .addCommand(adminCommand());
