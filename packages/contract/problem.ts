// Turns what a schema refuses into one sentence for a person.

import type { z } from 'zod';

/** The first problem only: one thing to mend at a time, named by its path. */
export function problemSentence(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'The request body is not acceptable.';
  const field = issue.path.length === 0 ? 'The request body' : `\`${issue.path.join('.')}\``;
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined && issue.path.length > 0) return `${field} is required.`;
      return `${field} must be ${article(issue.expected)}.`;
    case 'unrecognized_keys':
      return `Unknown field ${listed(issue.keys.map((key) => [...issue.path, shorten(key)].join('.')))}.`;
    default:
      return `${field} ${issue.message}.`;
  }
}

function article(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}

const mostListed = 5;

function listed(keys: readonly string[]): string {
  const shown = keys.slice(0, mostListed).map((key) => `\`${key}\``);
  const more = keys.length - shown.length;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`;
}

/** A caller's own field name comes back in the sentence, but never by the megabyte. */
function shorten(key: string): string {
  return key.length <= 40 ? key : `${key.slice(0, 40)}…`;
}
