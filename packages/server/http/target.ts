// The path a request names, before anything else is known of it.

export interface Target {
  /** Decoded segments below the root; undefined for a path nothing can match. */
  readonly segments: readonly string[] | undefined;
  /** Where a trailing slash is redirected to (Part 1 rule 6). */
  readonly redirect: string | undefined;
  readonly query: string;
}

const nothing: Target = { segments: undefined, redirect: undefined, query: '' };

export function readTarget(url: string): Target {
  // Origin form only; the absolute form of a proxy request is cut down to it.
  const target = url.startsWith('/') ? url : originForm(url);
  if (target === undefined) return nothing;
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark + 1);
  if (path === '/') return { segments: [], redirect: undefined, query };
  // A redirect to `//host` would leave this site, and browsers read `\\` as `/`: such a path is simply unknown.
  if (path.startsWith('//') || path.includes('\\')) return nothing;
  if (path.endsWith('/')) {
    // Not by a regular expression: it would look at a run of slashes once from each of them.
    let end = path.length;
    while (path[end - 1] === '/') end -= 1;
    const bare = path.slice(0, end);
    return { segments: undefined, redirect: mark === -1 ? bare : `${bare}?${query}`, query };
  }
  return { segments: safeSegments(path), redirect: undefined, query };
}

function originForm(url: string): string | undefined {
  const match = /^https?:\/\/[^/?#]+(\/.*)?$/i.exec(url);
  return match === null ? undefined : (match[1] ?? '/');
}

/** Empty and dot segments, encoded slashes, control characters and broken escapes match nothing. */
function safeSegments(path: string): string[] | undefined {
  const segments = path.slice(1).split('/');
  for (let i = 0; i < segments.length; i += 1) {
    let segment = segments[i] as string;
    if (segment.includes('%')) {
      try {
        segment = decodeURIComponent(segment);
      } catch {
        return undefined;
      }
    }
    if (unsafeSegment.test(segment)) return undefined;
    segments[i] = segment;
  }
  return segments;
}

// eslint-disable-next-line no-control-regex -- control characters are what this refuses
const unsafeSegment = /^\.{0,2}$|[/\\\u0000-\u001f\u007f]/;
