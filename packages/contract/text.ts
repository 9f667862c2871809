// The rules for names that people give to things.

import { z } from 'zod';
import { limits } from './limits.ts';

/** Characters as a person counts them: code points, not UTF-16 units. */
function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function between1And(most: number) {
  return (text: string) => text.length >= 1 && (text.length <= most || codePoints(text) <= most);
}

// eslint-disable-next-line no-control-regex -- control characters are what this refuses
const asciiControl = /[\u0000-\u001f\u007f]/;

/**
 * Control, bidirectional and invisible format characters make two names look the same.
 * ZWNJ and ZWJ (U+200C, U+200D) join letters and emoji, so they stay.
 */
const deceptive = /[\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u;

const wellFormed = (text: string) => text.isWellFormed();

/** Part 4, Workspaces 1. */
export const workspaceName = z
  .string()
  .trim()
  .refine(wellFormed, { error: 'must be well-formed Unicode', abort: true })
  .refine((text) => !asciiControl.test(text), {
    error: 'must have no control characters',
    abort: true,
  })
  .refine(between1And(limits.workspaceName), {
    error: `must have 1 to ${limits.workspaceName} characters after trimming`,
  })
  .meta({ minLength: 1, maxLength: limits.workspaceName });

/** wire-account section 3. Control characters are those of Unicode, not of ASCII alone. */
export const secretName = z
  .string()
  .trim()
  .refine(wellFormed, { error: 'must be well-formed Unicode', abort: true })
  .refine((text) => !/\p{Cc}/u.test(text), {
    error: 'must have no control characters',
    abort: true,
  })
  .refine(between1And(limits.secretName), {
    error: `must have 1 to ${limits.secretName} characters after trimming`,
  })
  .meta({ minLength: 1, maxLength: limits.secretName });

/** wire-account section 3: counted as it is delivered, in bytes of UTF-8. */
export const secretValue = z
  .string()
  .refine(wellFormed, { error: 'must be well-formed Unicode', abort: true })
  .refine((text) => text !== '' && new TextEncoder().encode(text).length <= limits.secretValue, {
    error: `must have 1 to ${limits.secretValue} bytes of UTF-8`,
  })
  .meta({ minLength: 1, maxLength: limits.secretValue });

/** wire-account section 4. */
export const apiKeyName = z
  .string()
  .trim()
  .refine(wellFormed, { error: 'must be well-formed Unicode', abort: true })
  .refine((text) => !deceptive.test(text), {
    error: 'must have no control, bidirectional or invisible characters',
    abort: true,
  })
  .refine(between1And(limits.apiKeyName), {
    error: `must have 1 to ${limits.apiKeyName} characters after trimming`,
  })
  .meta({ minLength: 1, maxLength: limits.apiKeyName });
