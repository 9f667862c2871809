// `cubicle admin`: accounts, people, keys, plans and hosts, for the operator of the service.

import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { type Role, roles } from '@cubicle/contract/route.ts';
import { OperatorMistake } from '@cubicle/server/app/operator.ts';
import { type PlanFigure, planFigures } from '@cubicle/server/db/plans.ts';
import { hostsCommand } from './admin-host.ts';
import { keyringCommand } from './admin-keyring.ts';
import { answering, group, verb } from './admin-verbs.ts';

interface Membership {
  account: string;
  email: string;
}

interface UserChange {
  name?: string;
  verified?: boolean;
  suspended?: boolean;
}

interface KeyOptions extends Membership {
  workspace?: string;
  manageKeys: boolean;
  name?: string;
}

type Figures = Partial<Record<PlanFigure, number>>;

const plans = ['none', 'solo', 'studio', 'swarm'];

export function adminCommand(): Command {
  return group('admin')
    .description('Accounts, people, keys, plans, hosts and the keyring.')
    .addCommand(accountCommand())
    .addCommand(memberCommand())
    .addCommand(userCommand())
    .addCommand(keyCommand())
    .addCommand(planCommand())
    .addCommand(hostsCommand())
    .addCommand(keyringCommand());
}

function accountCommand(): Command {
  return group('account')
    .description('Make, change and list accounts.')
    .addCommand(
      verb('create', 'Make an account with its owner and a first key.')
        .requiredOption('--name <name>', 'what people call the account')
        .addOption(planOption().makeOptionMandatory())
        .requiredOption('--owner <email>', 'the owner’s e-mail address')
        .action(
          answering((operator, options: { name: string; plan: string; owner: string }) =>
            operator.createAccount(options),
          ),
        ),
    )
    .addCommand(
      verb('set', 'Change an account’s plan, suspend it or bring it back.')
        .argument('<id>')
        .addOption(planOption())
        .option('--suspended <true|false>', 'no calls while true', yesOrNo)
        .action(
          answering(
            async (operator, options: { plan?: string; suspended?: boolean }, id: string) => ({
              account: await operator.setAccount(id, something(options)),
            }),
          ),
        ),
    )
    .addCommand(
      verb('list', 'List the accounts, oldest first.').action(
        answering(async (operator) => ({ accounts: await operator.listAccounts() })),
      ),
    );
}

function memberCommand(): Command {
  const of = (command: Command) =>
    command
      .requiredOption('--account <id>', 'the account')
      .requiredOption('--email <email>', 'the person’s e-mail address');
  return group('member')
    .description('Who belongs to an account, and in which role.')
    .addCommand(
      of(verb('add', 'Add a person to an account.'))
        .addOption(roleOption().makeOptionMandatory())
        .action(
          answering((operator, options: Membership & { role: Role }) =>
            operator.addMember(options),
          ),
        ),
    )
    .addCommand(
      of(verb('set', 'Change a member’s role or seat.'))
        .addOption(roleOption())
        .option('--seat-suspended <true|false>', 'waiting for a seat: cannot act', yesOrNo)
        .action(
          answering(
            (
              operator,
              { account, email, ...change }: Membership & { role?: Role; seatSuspended?: boolean },
            ) => operator.setMember(account, email, something(change)),
          ),
        ),
    )
    .addCommand(
      of(verb('remove', 'Take a person off an account; their keys answer 403.')).action(
        answering((operator, { account, email }: Membership) =>
          operator.removeMember(account, email),
        ),
      ),
    );
}

function userCommand(): Command {
  return group('user')
    .description('People, in all their accounts.')
    .addCommand(
      verb('set', 'Change a person’s name, verification or sign-in.')
        .requiredOption('--email <email>', 'the person’s e-mail address')
        .option('--name <name>', 'display name')
        .option('--verified <true|false>', 'whether the address is verified', yesOrNo)
        .option('--suspended <true|false>', 'whether the person is suspended everywhere', yesOrNo)
        .action(
          answering(async (operator, { email, ...change }: { email: string } & UserChange) => ({
            user: await operator.setUser(email, something(change)),
          })),
        ),
    );
}

function keyCommand(): Command {
  return group('key')
    .description('API keys.')
    .addCommand(
      verb('create', 'Make a key for a member. It is shown once.')
        .requiredOption('--account <id>', 'the account')
        .requiredOption('--email <email>', 'the holder’s e-mail address')
        .option('--workspace <id>', 'confine the key to this workspace')
        .option('--manage-keys', 'let the key make and revoke keys', false)
        .option('--name <name>', 'a name for the key')
        .action(answering((operator, options: KeyOptions) => operator.createKey(options))),
    )
    .addCommand(
      verb('revoke', 'Revoke a key at once.')
        .argument('<id>')
        .action(answering((operator, _options: object, id: string) => operator.revokeKey(id))),
    );
}

function planCommand(): Command {
  return group('plan')
    .description('Plans and their quotas.')
    .addCommand(
      verb('list', 'List the plans and their figures.').action(
        answering(async (operator) => ({ plans: await operator.listPlans() })),
      ),
    )
    .addCommand(
      verb('set', `Change figures of a plan: ${planFigures.join(', ')}.`)
        .addArgument(new Argument('<id>').choices(plans))
        .argument('[figure=value...]', 'such as max_computers=10 rate_units=6000', figure)
        .option('--label <label>', 'the name people see')
        .action(
          answering(
            async (operator, { label }: { label?: string }, id: string, figures?: Figures) => ({
              plan: await operator.setPlan(id, something({ ...figures, ...(label && { label }) })),
            }),
          ),
        ),
    );
}

function planOption(): Option {
  return new Option('--plan <plan>', 'the plan').choices(plans);
}

function roleOption(): Option {
  return new Option('--role <role>', 'the role').choices(roles);
}

function yesOrNo(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new InvalidArgumentError('It is true or false.');
}

function figure(text: string, soFar: Figures = {}): Figures {
  const [, name = '', value = ''] = /^(\w+)=(\d{1,15})$/.exec(text) ?? [];
  if (!(planFigures as readonly string[]).includes(name)) {
    throw new InvalidArgumentError(`It is one of ${planFigures.join(', ')}, then = and a number.`);
  }
  // A key has half of the units, and GET /account costs 10.
  const least = name === 'rate_units' ? 20 : 0;
  const most = name === 'snapshot_storage_bytes' ? Number.MAX_SAFE_INTEGER : 2 ** 31 - 1;
  if (Number(value) < least || Number(value) > most) {
    throw new InvalidArgumentError(`${name} is a number from ${least} to ${most}.`);
  }
  return { ...soFar, [name]: Number(value) };
}

/** A change that changes nothing is a mistake of the caller's. */
function something<Change extends object>(change: Change): Change {
  if (Object.keys(change).every((name) => name === 'json')) {
    throw new OperatorMistake('Say what to change; `--help` lists the options.');
  }
  return change;
}
