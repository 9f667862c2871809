// What the steps of a build are in a guest: scripts for bash, run by root with `set -e`.

import type { HostBuildStep } from '@cubicle/contract/host/builds.ts';
import { finishScript } from './finish-script.ts';
import { quoted } from './quoted.ts';

type Step<Kind extends HostBuildStep['kind']> = Extract<HostBuildStep, { kind: Kind }>;

/**
 * Before the first step. A desktop would only write into homes and take time from the steps. The agent is
 * there before the rest of the system, which steps find booted, and with a network: those that need none do
 * not fail without.
 */
export const prelude = `
systemctl stop cubicle-desktop
timeout 30 systemctl is-system-running --wait >/dev/null || :
for _ in {1..100}; do
  [ -z "$(ip -4 route show default)" ] || ! grep -q ^nameserver /etc/resolv.conf || break
  sleep 0.1
done
`;

/** Undefined for a step that does nothing in the guest. */
export function scriptOf(step: HostBuildStep): string | undefined {
  switch (step.kind) {
    case 'apt':
      return install(step);
    case 'run':
      return step.script;
    case 'file':
      return writeFile(step);
    case 'mkdir':
      return makeFolder(step);
    case 'finish':
      return finishScript(step.env);
    default:
      return undefined;
  }
}

/** Variables of `env` steps. A secret of the same name counts instead. */
export function exports(
  env: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): string {
  return Object.entries({ DEBIAN_FRONTEND: 'noninteractive', ...env })
    .filter(([name]) => !Object.hasOwn(secrets, name))
    .map(([name, value]) => `export ${name}=${quoted(value)}; `)
    .join('');
}

/**
 * The lists are fetched once, and again when an earlier step has changed the sources. Nothing is flushed to
 * the disk: what a crash leaves of a build is thrown away. Files of earlier steps are kept as they are.
 */
function install({ packages }: Step<'apt'>): string {
  return `
fetched=/run/cubicle-lists-fetched
if [ ! -e $fetched ] || [ -n "$(find /etc/apt -newer $fetched -print -quit)" ]; then
  : >$fetched
  apt-get update -q -o APT::Update::Error-Mode=any -o Acquire::Retries=3 -o Acquire::Languages=none
fi
apt-get install -q -y --no-install-recommends -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \\
  -o DPkg::Options::=--force-unsafe-io -o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold \\
  -- ${packages.map(quoted).join(' ')}
`;
}

/** Whole or not at all; a link in its place makes way and what it leads to stays. */
function writeFile({ path, mode, owner, content_b64 }: Step<'file'>): string {
  return `
path=${quoted(path)}
mkdir -p "\${path%/*}/"
[ ! -d "$path" ] || { echo "$path is a folder"; exit 1; }
draft="\${path%/*}/.cubicle-draft"
base64 -d >"$draft" <<'CONTENT'
${content_b64.replaceAll(/.{1,4096}/g, '$&\n')}CONTENT
chown ${quoted(owner)} "$draft"
chmod ${quoted(mode)} "$draft"
mv -fT "$draft" "$path"
`;
}

function makeFolder({ path, mode, owner }: Step<'mkdir'>): string {
  return `
path=${quoted(path)}
mkdir -p "$path"
chown ${quoted(owner)} "$path"
chmod ${quoted(mode)} "$path"
`;
}
