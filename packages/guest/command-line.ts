// How a command is started: its arguments, environment, identity and folder.

import type { CommandBody } from '@cubicle/contract/guest/messages.ts';
import { type Account, isRoot } from './accounts.ts';

export interface CommandLine {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Where it starts unless the command names a folder. */
  readonly home: string;
  /** Handed over as file descriptor 3, being too long for an argument. */
  readonly script: string | undefined;
}

/** The kernel takes 131072 bytes in one argument, its NUL included. */
const longestScript = 120 * 1024;

/** The marker by which descendants are found that left session and process group. */
export const markerName = 'CUBICLE_EXECUTION_ID';

const shadow = 'CUBICLE_ENV_';
/**
 * The caller's variables are put on top of the profile: /etc/profile sets PATH whatever it was. They come
 * in the environment under another name, since arguments can be read by every user of the guest.
 */
const applyShadows =
  `for CUBICLE_ENV in "\${!${shadow}@}"; do ` +
  `export "\${CUBICLE_ENV#${shadow}}=\${!CUBICLE_ENV}" 2>/dev/null; ` +
  `unset "$CUBICLE_ENV"; done; unset CUBICLE_ENV; `;
const readScript = 'eval "$(cat <&3)" 3<&-';
const enterFolder = 'cd "$1" || exit 127; shift; exec "$@"';
const enterGroup = '{ echo 0 >"$1"; } 2>/dev/null; shift; exec "$@"';

export interface Surroundings {
  readonly account: Account;
  /** Variables of the desktop's session. */
  readonly session: Readonly<Record<string, string>>;
  /** A cgroup.procs file to enter before anything else. */
  readonly group: string | undefined;
  /** The execution's id, for those that can be killed. */
  readonly marker: string | undefined;
}

export function commandLine(body: CommandBody, around: Surroundings): CommandLine {
  const { account, session, group, marker } = around;
  const env: Record<string, string> = {
    ...environment(account, session),
    ...(marker === undefined ? {} : { [markerName]: marker }),
  };
  let before = '';
  for (const [name, value] of Object.entries(body.env)) {
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      env[shadow + name] = value;
      before = applyShadows;
    } else {
      // No shell can set it, and none changes it on the way.
      env[name] = value;
    }
  }
  const tooLong = Buffer.byteLength(body.command) > longestScript;
  // After `--` a command may begin with a dash.
  const script = before + (tooLong ? readScript : body.command);
  let argv: [string, ...string[]] = ['bash', '-lc', '--', script];
  if (body.cwd !== null) argv = ['sh', '-c', enterFolder, 'cubicle', body.cwd, ...argv];
  if (isRoot && account.uid !== 0) argv = [...as(account), ...argv];
  if (group !== undefined) argv = ['sh', '-c', enterGroup, 'cubicle', group, ...argv];
  return { argv, env, home: account.home, script: tooLong ? body.command : undefined };
}

export function environment(
  { name, home, shell }: Account,
  session: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    ...session,
    HOME: home,
    USER: name,
    LOGNAME: name,
    SHELL: shell,
  };
}

function as({ uid, gid }: Account): [string, ...string[]] {
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--'];
}
