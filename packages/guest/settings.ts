// Where the agent finds things. Every place has its name in a real guest; tests move them.

import { join } from 'node:path';
import { secretsFolder } from '@cubicle/contract/secret-names.ts';

export interface Settings {
  /** The host's socket. */
  readonly link: string;
  /** What the desktop's session says of itself. Its user writes there too. */
  readonly run: string;
  /** Output and pipes of commands, sockets of terminals: volatile, and root's alone. */
  readonly exec: string;
  /** Survives a reboot of the guest: which uploads were under way. */
  readonly state: string;
  /** Secrets that were delivered: in memory, gone with the boot. */
  readonly secrets: string;
  /** Where shells are set up for everybody. */
  readonly etc: string;
  /** The kind of desktop that the image has. */
  readonly desktop: 'x11' | 'wayland';
  /** The X server's socket. */
  readonly display: string;
  /** Whose desktop it is. */
  readonly user: string;
  /** Instead of the account's own home. */
  readonly home: string | undefined;
  /** Whether commands may have cgroups. */
  readonly cgroups: boolean;
}

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    link: env['CUBICLE_LINK'] ?? '/opt/cubicle/link/agent.sock',
    run: env['CUBICLE_RUN'] ?? '/run/cubicle',
    exec: env['CUBICLE_EXEC'] ?? '/run/cubicle-agent',
    state: env['CUBICLE_STATE'] ?? '/var/lib/cubicle',
    secrets: env['CUBICLE_SECRETS'] ?? secretsFolder,
    etc: env['CUBICLE_ETC'] ?? '/etc',
    desktop: env['CUBICLE_DESKTOP'] === 'wayland' ? 'wayland' : 'x11',
    display: env['CUBICLE_DISPLAY'] ?? '/tmp/.X11-unix/X0',
    user: env['CUBICLE_USER'] ?? 'user',
    home: env['CUBICLE_HOME'],
    cgroups: env['CUBICLE_CGROUP'] !== 'none',
  };
}

export function places({ run, state, exec }: Settings) {
  return {
    sessionEnv: join(run, 'session.env'),
    desktopReady: join(run, 'desktop-ready'),
    screen: join(run, 'vnc.sock'),
    uploads: join(state, 'uploads'),
    terminals: join(exec, 'terminals'),
  };
}
