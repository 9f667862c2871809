// Steps in a real guest: each is one script that its agent runs as root.

import type { HostBuildStep } from '@cubicle/contract/host/builds.ts';
import type { Context } from '../engine/engine.ts';
import type { GuestLinks } from '../guest/links.ts';
import { Tail } from './masked.ts';
import { exports, prelude, scriptOf } from './scripts.ts';
import { StepFailed, type Surroundings, type Workshop } from './workshop.ts';

/** From the start of a guest until its agent calls: a loaded machine takes seconds. */
const bootMs = 120_000;
/** Above the bound of the whole build, which ends a step. */
const stepMs = 3_600_000;

export class GuestWorkshop implements Workshop {
  readonly #links: GuestLinks;

  constructor(links: GuestLinks) {
    this.#links = links;
  }

  async ready(context: Context, instance: string): Promise<void> {
    const late = AbortSignal.timeout(bootMs);
    const signal = AbortSignal.any([context.signal, late]);
    try {
      await this.#links.whenConnected({ signal }, instance);
    } catch (error) {
      context.signal.throwIfAborted();
      throw new Error('a build’s guest did not call', { cause: error });
    }
    await this.#run(context, instance, prelude, { env: {}, secrets: {} });
  }

  async carryOut(
    context: Context,
    instance: string,
    step: HostBuildStep,
    around: Surroundings,
  ): Promise<void> {
    const script = scriptOf(step);
    if (script === undefined) return;
    // Maintainer scripts of packages have no business with them.
    const secrets = step.kind === 'run' ? around.secrets : {};
    await this.#run(context, instance, script, { env: around.env, secrets });
  }

  async #run(
    context: Context,
    instance: string,
    script: string,
    { env, secrets }: Surroundings,
  ): Promise<void> {
    // On one line, so that what bash says of line 3 is about line 3.
    const command = `exec 2>&1; set -e; ${exports(env, secrets)}${script}`;
    if (command.includes('\0')) throw new StepFailed('it has a NUL character in it');
    const asked = { command, env: secrets };
    const result = await this.#links.exec(context, instance, asked, stepMs);
    if (!result.ok) throw new StepFailed('the guest went away under it');
    const tail = new Tail();
    try {
      for await (const chunk of result.stdout) tail.add(chunk);
      for await (const chunk of result.stderr) tail.add(chunk);
    } catch {
      context.signal.throwIfAborted();
      throw new StepFailed('the guest went away under it');
    }
    if (result.exitCode !== 0) {
      const output = tail.told(Object.values(secrets));
      const lost = result.outTruncated ? ', and the end of its output was too much to keep' : '';
      throw new StepFailed(`exit code ${result.exitCode}${lost}`, output);
    }
  }
}
