// How a computer stands in the engine: the labels that join the two, and what its guest is given.

import { hash, randomBytes } from 'node:crypto';
import type { HostShape } from '@cubicle/contract/host/api.ts';
import type { buildLabels } from './builds/labels.ts';
import type { Context, Engine, Instance, InstanceSpec, Shape } from './engine/engine.ts';
import type { GuestLinks } from './guest/links.ts';
import type { LinkFolders } from './link-folder.ts';

const names = {
  computer: 'computer',
  operation: 'operation',
  resolution: 'resolution',
  image: 'image',
} as const;

export interface Labels {
  /** Empty for one that waits in the pool. */
  readonly computer: string;
  /** The operation that made it. */
  readonly operation: string;
  readonly resolution: string;
  /** The digest of the image it was made from, or the id of the build. */
  readonly image: string;
}

export function labelsOf({ labels }: Instance): Labels {
  return {
    computer: labels[names.computer] ?? '',
    operation: labels[names.operation] ?? '',
    resolution: labels[names.resolution] ?? '',
    image: labels[names.image] ?? '',
  };
}

/**
 * What an operation makes has a name drawn from it: repeated by a daemon that remembers nothing, it meets
 * what was made before, even if the engine had not got to showing it yet.
 */
export function instanceIdFor(operation: string): string {
  return `cub-${hash('sha256', operation, 'hex').slice(0, 12)}`;
}

export function newInstanceId(): string {
  return `cub-${randomBytes(6).toString('hex')}`;
}

/** An instance goes with all that the host keeps for it. One that is not there is as good as removed. */
export async function removeInstance(
  context: Context,
  { engine, links, folders }: Keepers,
  id: string,
): Promise<void> {
  await engine.delete(context, id);
  await links.close(id);
  await folders.remove(id);
}

interface Keepers {
  readonly engine: Engine;
  readonly links: GuestLinks;
  readonly folders: LinkFolders;
}

export interface SpecParts {
  readonly id: string;
  readonly shape: Shape;
  readonly labels: Labels | ReturnType<typeof buildLabels>;
  readonly linkDir: string;
  readonly agentDir: string;
}

/** A guest writes to neither folder: what it keeps is on its own disk, within its own limits. */
export function specOf({ id, shape, labels, linkDir, agentDir }: SpecParts): InstanceSpec {
  const mount = (name: string, hostPath: string) => ({
    name,
    hostPath,
    guestPath: `/opt/cubicle/${name}`,
    readOnly: true,
  });
  return {
    id,
    shape,
    labels: { ...labels },
    mounts: [mount('agent', agentDir), mount('link', linkDir)],
  };
}

export function shapeOf({ cpu, ram_mb, disk_gb }: HostShape): Shape {
  return { cpu, ramMb: ram_mb, diskGb: disk_gb };
}

/** The engine's words for what callers are told. */
export const statuses = {
  running: 'running',
  stopped: 'stopped',
  frozen: 'suspended',
  unfinished: 'building',
  broken: 'half-removed',
} as const;
