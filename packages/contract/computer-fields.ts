// Fields that several computer routes share, with the bounds of wire-computers sections 2, 4 and 6.

import { z } from 'zod';
import { limits } from './limits.ts';

// eslint-disable-next-line no-control-regex -- control characters are what this strips
const controls = /[\u0000-\u001f\u007f-\u009f]/g;

/** By code points, so that no character is split. */
function cut(text: string): string {
  return Array.from(text).slice(0, limits.computerName).join('');
}

/** A label, not unique: control characters are dropped, then it is trimmed and cut. */
export const computerName = z
  .string()
  .refine((text) => text.isWellFormed(), { error: 'must be well-formed Unicode', abort: true })
  .transform((text) => cut(text.replace(controls, '').trim()))
  .refine((text) => text !== '', { error: 'must not be blank' });

export const cpu = z.int().min(1).max(256);
export const ramMb = z.int().min(512).max(1_048_576);
export const diskGb = z.int().min(1).max(65_536);

const shape = /^([1-9]\d{2,3})x([1-9]\d{2,3})(?:x(16|24|32))?$/;

/** `WxH` or `WxHxD`; stored with its depth. */
export const resolution = z.string().transform((text, context) => {
  const [, width = '', height = '', depth = '24'] = shape.exec(text) ?? [];
  const [w, h] = [Number(width), Number(height)];
  if (!(w >= 640 && w <= 3840 && h >= 480 && h <= 2160 && w % 2 === 0 && h % 2 === 0)) {
    context.issues.push({
      code: 'custom',
      input: text,
      message:
        'must be WxH or WxHxD with even sides from 640x480 to 3840x2160 and depth 16, 24 or 32',
    });
    return z.NEVER;
  }
  return `${w}x${h}x${depth}`;
});

export const defaultResolution = '1280x800x24';

export const idleSuspendMin = z.int().min(0).max(limits.idleSuspendMin);

export const computerStatuses = [
  'running',
  'stopped',
  'suspended',
  'building',
  'build-failed',
  'half-removed',
] as const;
export type ComputerStatus = (typeof computerStatuses)[number];

export const listingStates = ['live', 'unreachable', 'deleting', 'deleted', 'lost'] as const;
export type ListingState = (typeof listingStates)[number];
