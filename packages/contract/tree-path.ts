// The paths of trees that an event stream watches (wire-guest section 11).

import { limits } from './limits.ts';

// eslint-disable-next-line no-control-regex -- control characters are what this refuses
const controls = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * The tree as it is watched and told: empty and `.` segments dropped, `..` taking the one before away.
 * Nothing for what cannot be watched: relative, too long, not Unicode, or everything there is.
 */
export function cleanTree(path: string): string | undefined {
  if (!path.startsWith('/') || !path.isWellFormed() || controls.test(path)) return undefined;
  if (Buffer.byteLength(path) > limits.treePath) return undefined;
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return kept.length === 0 ? undefined : `/${kept.join('/')}`;
}
