// Makes new shells read the variables of bound secrets. What is written to the guest's disk for that names the
// file they are in, and none of them.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** As far as the disk takes it: a full one keeps shells from their variables, and nothing else from its secrets. */
export function shellHook(etc: string, variables: string): void {
  try {
    addHooks(etc, variables);
  } catch {
    // Commands and terminals have them all the same, and the next delivery tries again.
  }
}

/** Login shells read the folder profile.d, other interactive ones bash.bashrc. */
function addHooks(etc: string, variables: string): void {
  const line = `if [ -r ${variables} ]; then . ${variables}; fi\n`;
  const profiles = join(etc, 'profile.d');
  const ours = join(profiles, 'cubicle-secrets.sh');
  if (existsSync(profiles) && !has(ours, line)) writeFileSync(ours, line);
  const bashrc = join(etc, 'bash.bashrc');
  if (existsSync(bashrc) && !has(bashrc, line)) {
    appendFileSync(bashrc, `\n# Secrets bound to this computer.\n${line}`);
  }
}

function has(file: string, line: string): boolean {
  return existsSync(file) && readFileSync(file, 'utf8').includes(line);
}
