/** Reads the code of an error: the system's (`ENOENT`) or PostgreSQL's SQLSTATE (`57P03`). */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
