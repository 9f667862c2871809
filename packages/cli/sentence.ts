// What went wrong, for a person.

/** What a person can act on; the stack is for defects only. */
export function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'EADDRINUSE') {
    return 'The port is taken; choose another with CUBICLE_PORT (0 picks a free one).';
  }
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`;
}
