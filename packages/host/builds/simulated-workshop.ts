// Steps on the simulated engine, whose guests have neither a shell nor an agent. Files appear on the record's
// disk; of a script it knows `echo`, `sleep` and `exit`, which is enough to make builds slow or fail.

import { setTimeout as pause } from 'node:timers/promises';
import type { HostBuildStep } from '@cubicle/contract/host/builds.ts';
import type { Context } from '../engine/engine.ts';
import type { SimulatedEngine } from '../engine/simulated/engine.ts';
import { Tail } from './masked.ts';
import { StepFailed, type Surroundings, type Workshop } from './workshop.ts';

/** The one package that there is none of. */
const missing = 'no-such-package';

export class SimulatedWorkshop implements Workshop {
  readonly #engine: SimulatedEngine;

  constructor(engine: SimulatedEngine) {
    this.#engine = engine;
  }

  async ready(): Promise<void> {}

  async carryOut(
    context: Context,
    instance: string,
    step: HostBuildStep,
    around: Surroundings,
  ): Promise<void> {
    context.signal.throwIfAborted();
    const write = (path: string, text: string) => this.#engine.writeFile(instance, path, text);
    switch (step.kind) {
      case 'apt':
        if (step.packages.includes(missing)) {
          throw new StepFailed('exit code 100', `E: Unable to locate package ${missing}`);
        }
        for (const name of step.packages) write(`/var/lib/dpkg/info/${name}.list`, '');
        return;
      case 'run':
        return runScript(context, step.script, around);
      case 'file':
        return write(step.path, Buffer.from(step.content_b64, 'base64').toString('utf8'));
      case 'mkdir':
        return write(`${step.path}/`, '');
      case 'finish':
        return write(
          '/etc/environment',
          Object.entries(step.env)
            .map(([name, value]) => `${name}=${value}\n`)
            .join(''),
        );
      default:
    }
  }
}

async function runScript(
  { signal }: Context,
  script: string,
  { env, secrets }: Surroundings,
): Promise<void> {
  const variables: Record<string, string> = { ...env, ...secrets };
  const output = new Tail();
  for (const line of script.split('\n')) {
    const [word, ...rest] = line.trim().split(/\s+/);
    const text = rest.join(' ').replaceAll(/\$\{?(\w+)\}?/g, (_, name) => variables[name] ?? '');
    if (word === 'echo') output.add(Buffer.from(`${text}\n`));
    if (word === 'sleep') await pause(Number(text) * 1_000, undefined, { signal });
    if (word === 'exit' && text !== '0') {
      throw new StepFailed(`exit code ${text}`, output.told(Object.values(secrets)));
    }
  }
}
