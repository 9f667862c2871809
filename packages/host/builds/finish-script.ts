// The last step of every build: gives the finished computer its variables, and takes away what belongs to
// this one guest and to its making.

import { quoted } from './quoted.ts';

/** These are the session's own to say. */
const sessions = new Set([
  'DBUS_SESSION_BUS_ADDRESS',
  'DISPLAY',
  'HOME',
  'LOGNAME',
  'SHELL',
  'SWAYSOCK',
  'USER',
  'WAYLAND_DISPLAY',
  'XDG_RUNTIME_DIR',
]);

export function finishScript(env: Readonly<Record<string, string>>): string {
  const variables = Object.entries(env).filter(([name]) => !sessions.has(name));
  return (variables.length === 0 ? '' : give(variables)) + cleanUp;
}

/**
 * To shells, and with them to every command that the agent runs; to the desktop's session and terminals; to
 * logins without a shell of their own (PAM), which take no more than simple values.
 */
function give(variables: readonly [name: string, value: string][]): string {
  const lines = (line: (name: string, value: string) => string) =>
    quoted(variables.map(([name, value]) => `${line(name, value)}\n`).join(''));
  const simple = variables.filter(([, value]) => !/[\n"'#\\$@]|^\s|\s$/.test(value));
  return `
printf %s ${lines((name, value) => `export ${name}=${quoted(value)}`)} >/etc/profile.d/cubicle-env.sh
printf %s ${lines((name, value) => `${name}="${value.replaceAll(/["\\$`]/g, '\\$&')}"`)} >>/usr/lib/cubicle/session.env
printf %s ${quoted(simple.map(([name, value]) => `${name}=${value}\n`).join(''))} >>/etc/environment
`;
}

/**
 * The computer's id stays on the disk: by it whoever boots from a copy knows that it is somebody else, and
 * makes keys and a machine id of its own.
 */
const cleanUp = `
cd /
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/lib/dpkg/*-old
rm -rf /var/lib/cubicle/uploads
find /root /home -maxdepth 2 -type f \\( -name '.*_history' -o -name .lesshst -o -name .viminfo \\) -delete
find /var/log -type f \\( -name '*.gz' -o -name '*.xz' -o -name '*.[0-9]' \\) -delete
find /var/log -type f -exec truncate --size 0 {} +
find /tmp /var/tmp -mindepth 1 -delete
rm -f /etc/hostname
: >/etc/machine-id
: >/etc/resolv.conf
`;
