// How a computer stands in the engine: the labels that join the two, and what its guest is given.

import { hash, randomBytes } from 'node:crypto';
import type { HostShape } from '@cubicle/contract/host/api.ts';
import type { Instance, InstanceSpec, Shape } from './engine/engine.ts';

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
  /** The digest of the image it was made from. */
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

export interface SpecParts {
  readonly id: string;
  readonly shape: Shape;
  readonly labels: Labels;
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
