// Packages for guests come from a mirror outside of the machine, which a machine of tests may not let them
// reach. Then a script does instead what the package would have, and the test says so.

/** What `hello` of Debian is to a test. */
export const helloScript =
  'printf \'#!/bin/sh\\necho "Hello, world!"\\n\' >/usr/local/bin/hello; chmod 755 /usr/local/bin/hello';

export const noMirror = 'guests reach no mirror from here: nothing was shown of packages';

/** Whether an `apt` step failed because nobody was reached, and for no other reason. */
export function isMirrorAway(error: string | undefined): boolean {
  return /Temporary failure resolving|Could not (resolve|connect)|Unable to connect|Connection (timed out|refused|failed)/.test(
    error ?? '',
  );
}
