// Where the steps of a build are done: in a guest through its agent, or in a record of the simulated engine.

import type { HostBuildOrder, HostBuildStep } from '@cubicle/contract/host/builds.ts';
import type { Context } from '../engine/engine.ts';

export interface Surroundings {
  /** Of the `env` steps before. */
  readonly env: Readonly<Record<string, string>>;
  /** Nowhere but in the environment of the processes of `run` steps. */
  readonly secrets: HostBuildOrder['secrets'];
}

export interface Workshop {
  /** Waits until steps can be done in the instance, which was just started. */
  ready(context: Context, instance: string): Promise<void>;
  /** Throws StepFailed when it does not succeed. */
  carryOut(
    context: Context,
    instance: string,
    step: HostBuildStep,
    around: Surroundings,
  ): Promise<void>;
}

/** A step did not succeed. */
export class StepFailed extends Error {
  /** The end of what it wrote, without secrets; empty when it wrote nothing. */
  readonly output: string;

  /** `how`: for a person, to follow the number of the step. */
  constructor(how: string, output = '') {
    super(how);
    this.output = output;
  }
}
