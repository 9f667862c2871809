// A document as something to do: the steps that a host carries out, and what they begin with. Pure.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostBuildOrder, HostBuildStep } from '@cubicle/contract/host/builds.ts';
import { parseRef, type TemplateDocument } from '@cubicle/contract/template-document.ts';
import { canonicalJson, digestOf } from '../documents/canonical.ts';
import { rowOf, type ValidDocument } from '../documents/read.ts';
import { hasImage, publishedBySystem } from './system-templates.ts';

export interface BuildPlan {
  readonly ref: string;
  readonly docDigest: string;
  readonly family: string;
  /** A template that hosts have an image of. */
  readonly parent: string;
  readonly shape: HostBuildOrder['shape'];
  readonly steps: readonly HostBuildStep[];
  readonly secrets: readonly { id: string; as: string }[];
  /** Of what else the image depends on. */
  readonly about: object;
}

/** A secret at the revision that a build gets. */
export interface FrozenSecret {
  readonly id: string;
  readonly revision: string;
  readonly as: string;
}

/** The family of images that a document's builds belong to. */
export function familyOf({ metadata, spec }: TemplateDocument): string {
  return spec.family ?? `golden-${metadata.namespace}`;
}

export function planOf({ document, ref, docDigest }: ValidDocument): BuildPlan {
  const { parent, layers } = layersOf(document);
  const { os, desktop, family, secrets = [] } = document.spec;
  const { cpu, ram_mb, disk_gb } = rowOf(document);
  const env = Object.assign({}, ...layers.map(({ spec }) => spec.env)) as Record<string, string>;
  return {
    ref,
    docDigest,
    family: familyOf(document),
    parent,
    shape: { cpu, ram_mb, disk_gb },
    steps: [
      ...layers.flatMap(({ spec }) => (spec.build ?? []).map(stepOf)),
      { kind: 'finish', label: 'Finish the image', env },
    ],
    secrets,
    about: { os, desktop, family },
  };
}

/** What decides the image. Two builds with the same key are the same build. */
export function buildKey(
  plan: BuildPlan,
  parentDigest: string,
  secrets: readonly FrozenSecret[],
): string {
  const { parent, steps, shape, about } = plan;
  const inputs = { parent, parentDigest, steps, disk_gb: shape.disk_gb, secrets, ...about };
  return digestOf(canonicalJson(JSON.parse(JSON.stringify(inputs))));
}

/**
 * The template with an image that it all begins with, and what is laid upon it: the service's own documents
 * are built anew from that image, so that a parent needs no build of its own.
 */
function layersOf(document: TemplateDocument): { parent: string; layers: TemplateDocument[] } {
  const layers = [document];
  for (let { from } = document.spec; ;) {
    const found = systemTemplate(from ?? baseOf(document));
    if (found === undefined) throw new Refusal('build_parent');
    if (hasImage(found.metadata.name)) return { parent: found.metadata.name, layers };
    layers.unshift(found);
    ({ from } = found.spec);
  }
}

/** The image that a document without a parent means. */
export function baseOf({ spec }: TemplateDocument): string {
  return spec.desktop === 'wayland' ? 'system/tiling' : 'system/base';
}

function systemTemplate(ref: string): TemplateDocument | undefined {
  const named = parseRef(ref);
  if (named?.namespace !== 'system') return undefined;
  return publishedBySystem(named.name, named.version)?.document;
}

type Step = NonNullable<TemplateDocument['spec']['build']>[number];

function stepOf({ apt, run, file, mkdir, env }: Step): HostBuildStep {
  if (apt !== undefined) return { kind: 'apt', label: shown(apt.join(' ')), packages: apt };
  if (run !== undefined) return { kind: 'run', label: shown(firstLine(run)), script: run };
  if (file !== undefined) {
    const { path, mode = '0644', owner = 'root', content, content_b64 } = file;
    const bytes = content_b64 ?? Buffer.from(content ?? '', 'utf8').toString('base64');
    return { kind: 'file', label: shown(path), path, mode, owner, content_b64: bytes };
  }
  if (mkdir !== undefined) {
    const { path, mode = '0755', owner = 'root' } = mkdir;
    return { kind: 'mkdir', label: shown(path), path, mode, owner };
  }
  const variables = env ?? {};
  return { kind: 'env', label: shown(Object.keys(variables).join(' ')), variables };
}

/** The first line of a script that does something. */
function firstLine(script: string): string {
  const lines = script.split('\n').map((line) => line.trim());
  return lines.find((line) => line !== '' && !line.startsWith('#')) ?? 'run';
}

const mostShown = 120;

/** On one line, and not too long for one. */
function shown(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what this takes out
  const plain = text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').toWellFormed();
  if (plain.length <= mostShown) return plain;
  return `${plain.slice(0, mostShown - 1).toWellFormed()}…`;
}
