// Makes new shells read the variables of bound secrets. What is written to the guest's disk for that names the
// file they are in, and none of them.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Login shells read the folder profile.d, other interactive ones bash.bashrc. */
export function shellHook(etc: string, variables: string): void {
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
