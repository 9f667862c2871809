// The `cubicle` command: `start` runs the service, `admin` is the operator's.

import { Command } from 'commander';
import { adminCommand } from './admin.ts';
import { hostCommand } from './host.ts';
import { startCommand } from './start.ts';

const program = new Command('cubicle')
  .description('A self-hosted service of full computers with a desktop.')
  .addCommand(startCommand())
  .addCommand(hostCommand())
  .addCommand(adminCommand());

await program.parseAsync();
