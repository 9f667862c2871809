// One build from its order to its image: an instance of the parent's image in which the steps are done. What
// it leaves when it succeeds is that instance, stopped and labelled; when it fails, whoever ran it removes it.

import { defaultResolution } from '@cubicle/contract/computer-fields.ts';
import type { HostBuildOrder } from '@cubicle/contract/host/builds.ts';
import type { Context, Engine } from '../engine/engine.ts';
import type { GuestLinks } from '../guest/links.ts';
import { shapeOf, specOf } from '../instances.ts';
import type { LinkFolders } from '../link-folder.ts';
import { buildLabels, builtLabels } from './labels.ts';
import type { BuildRecord } from './record.ts';
import type { Workshop } from './workshop.ts';

export interface BuildParts {
  readonly engine: Engine;
  readonly links: GuestLinks;
  readonly folders: LinkFolders;
  /** Node and the agent, mounted read-only into every guest. */
  readonly agentDir: string;
  readonly workshop: Workshop;
}

export async function carryOut(
  context: Context,
  { engine, links, folders, agentDir, workshop }: BuildParts,
  record: BuildRecord,
  instance: string,
  { parent, shape, steps, secrets }: HostBuildOrder,
): Promise<void> {
  record.enter('staging', 'Preparing a place for the build.');
  const resolution = defaultResolution;
  const linkDir = await folders.describe({ id: instance, resolution, hostname: 'build' });
  await links.open(instance, linkDir);

  record.enter('copying', `Making a disk from ${parent.template}.`);
  const labels = buildLabels(record.id, parent.digest);
  const spec = specOf({ id: instance, shape: shapeOf(shape), labels, linkDir, agentDir });
  await engine.create(context, spec, parent.digest);

  record.enter('building', 'Booting.');
  await engine.start(context, instance);
  await workshop.ready(context, instance);
  const env: Record<string, string> = {};
  for (const [i, step] of steps.entries()) {
    record.began(i + 1, `Step ${i + 1} of ${steps.length}: ${step.label}`);
    await workshop.carryOut(context, instance, step, { env, secrets });
    if (step.kind === 'env') Object.assign(env, step.variables);
    record.did(i + 1);
  }

  record.enter('publishing', 'Shutting down and keeping the disk.');
  await engine.stop(context, instance, false);
  // From here on it is an image, whatever becomes of this daemon.
  await engine.change(context, instance, { labels: builtLabels(record.id) });
}
