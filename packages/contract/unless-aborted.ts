// Waiting that a caller may leave: used on all sides, so it stands where all of them reach.

/** Answers as `work` does, or as soon as the caller leaves; `work` goes on by itself then. */
export async function unlessAborted<Result>(
  { signal }: { readonly signal: AbortSignal },
  work: Promise<Result>,
): Promise<Result> {
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([work, left.promise]);
  } finally {
    signal.removeEventListener('abort', leave);
    // Whoever left does not hear of a failure any more.
    work.catch(() => {});
  }
}
