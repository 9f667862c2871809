// A build as callers read it, and what a host tells of one as it is kept.

import type { HostBuildProgress } from '@cubicle/contract/host/builds.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Build, BuildProgress, BuildStep } from '@cubicle/contract/resources/builds.ts';
import type { Told } from '../db/build-following.ts';
import type { BuildRow, BuildStepRow } from '../db/builds.ts';

export function buildOf(row: BuildRow): Build {
  return {
    id: row.id,
    ref: row.ref,
    status: row.status,
    ...(row.error !== null && { error: row.error }),
    started_at: row.started_at.toISOString(),
    ...(row.finished_at !== null && { finished_at: row.finished_at.toISOString() }),
  };
}

export function progressOf(row: BuildRow): BuildProgress {
  return {
    id: row.id,
    status: row.status,
    done: row.status !== 'running',
    phase: row.phase as BuildProgress['phase'],
    step: row.step,
    of: row.steps.length,
    steps: row.steps.map((step, i) => ({ n: i + 1, ...step }) as BuildStep),
    note: row.note,
    ...(row.error !== null && { error: row.error }),
    updated_at: row.updated_at.toISOString(),
  };
}

/** What the host says, in the row's own steps. */
export function toldOf(row: BuildRow, progress: HostBuildProgress): Told {
  const steps = row.steps.map(({ kind, label }, i): BuildStepRow => {
    const { status = 'unknown', started_at, finished_at } = progress.steps[i] ?? {};
    return {
      kind,
      label,
      status,
      ...(started_at !== undefined && { started_at: inUtc(started_at) }),
      ...(finished_at !== undefined && { finished_at: inUtc(finished_at) }),
    };
  });
  return {
    moves: Math.max(progress.moves, row.moves + 1),
    phase: progress.phase,
    step: Math.min(Math.max(progress.step, 0), steps.length),
    steps,
    note: noteText(progress.note),
    at: new Date(progress.updated_at),
  };
}

/** One that its host no longer knows of. */
export function lostOf(row: BuildRow, why: string): Told {
  const steps = row.steps.map((step) =>
    step.status === 'done' ? step : { ...step, status: 'unknown' },
  );
  const { step } = row;
  return { moves: row.moves + 1, phase: 'failed', step, steps, note: why, at: new Date() };
}

/** Why it failed, never empty: the end of what the host tells, as far as it is kept. */
export function errorText({ error = '', note }: HostBuildProgress): string {
  const text = storable(error.trim() === '' ? note : error);
  return text.slice(-limits.buildError).toWellFormed().trim() || 'The build failed.';
}

const mostNote = 300;

function noteText(note: string): string {
  const [line = ''] = storable(note).trim().split('\n');
  return line.slice(0, mostNote).toWellFormed();
}

/** The database takes no NUL, and half a character is none. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

function inUtc(time: string): string {
  return new Date(time).toISOString();
}
