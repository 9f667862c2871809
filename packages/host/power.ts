// The commands that change how a computer runs. What is already so is left so, since any may be repeated.

import type { HostCommand, HostOutcome } from '@cubicle/contract/host/api.ts';
import type { Context, Engine, Instance } from './engine/engine.ts';
import { shapeOf } from './instances.ts';

export type PowerCommand = Exclude<HostCommand, { kind: 'create' | 'clone' | 'delete' }>;

export function power(
  context: Context,
  engine: Engine,
  instance: Instance,
  command: PowerCommand,
): Promise<HostOutcome> {
  switch (command.kind) {
    case 'start':
      return start(context, engine, instance, command.resume_only);
    case 'stop':
      return stop(context, engine, instance, command.force);
    case 'suspend':
      return suspend(context, engine, instance);
    case 'restart':
      return restart(context, engine, instance);
    default:
      return resize(context, engine, instance, command);
  }
}

const done = (status: 'running' | 'stopped' | 'suspended'): HostOutcome => ({
  outcome: 'done',
  status,
});
const refused = (why: Extract<HostOutcome, { outcome: 'refused' }>['why']): HostOutcome => ({
  outcome: 'refused',
  why,
});

async function start(
  context: Context,
  engine: Engine,
  { id, status }: Instance,
  resumeOnly: boolean,
): Promise<HostOutcome> {
  if (status === 'running') return done('running');
  if (status === 'stopped' && resumeOnly) return done('stopped');
  await engine.start(context, id);
  return done('running');
}

async function stop(
  context: Context,
  engine: Engine,
  { id, status }: Instance,
  force: boolean,
): Promise<HostOutcome> {
  await engine.stop(context, id, force || status === 'frozen');
  return done('stopped');
}

async function suspend(
  context: Context,
  engine: Engine,
  { id, status }: Instance,
): Promise<HostOutcome> {
  if (status === 'frozen') return done('suspended');
  if (status !== 'running') return refused('not_running');
  await engine.freeze(context, id);
  return done('suspended');
}

async function restart(
  context: Context,
  engine: Engine,
  { id, status }: Instance,
): Promise<HostOutcome> {
  if (status === 'frozen') return refused('suspended');
  await engine.restart(context, id);
  return done('running');
}

async function resize(
  context: Context,
  engine: Engine,
  { id, status }: Instance,
  command: Extract<PowerCommand, { kind: 'resize' }>,
): Promise<HostOutcome> {
  if (status === 'running') return refused('running');
  // A saved session does not survive a change of its machine.
  if (status === 'frozen') await engine.stop(context, id, true);
  await engine.change(context, id, { shape: shapeOf(command.shape) });
  return done('stopped');
}
