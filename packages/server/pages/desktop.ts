// The pages of a live desktop and what they are made of, with what a browser is told to allow them.

import { desktopPage } from '@cubicle/web/bundle.ts';

interface Served {
  readonly contentType: string;
  readonly content: () => Promise<string>;
  readonly headers: Readonly<Record<string, string>>;
}

const forEver = { 'Cache-Control': 'public, max-age=31536000, immutable' };
const policy = (framedBy: string, styles: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    "connect-src 'self'",
    // The pointer's picture, and pieces of the screen that come as JPEG.
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${framedBy}`,
  ].join('; ');

const page = (framedBy: string, styles = "'self'"): Served => ({
  contentType: 'text/html; charset=utf-8',
  content: async () => (await desktopPage()).html,
  headers: {
    'Content-Security-Policy': policy(framedBy, styles),
    'Referrer-Policy': 'no-referrer',
    'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
    'Cache-Control': 'no-cache',
  },
});

/** By their path; `*` stands for a computer's id. */
export const desktopPages = {
  // Made to be put into others' pages; nothing can be done there but to watch.
  'embed/*': page('*'),
  // Clicks on this one do things, so nobody may lay it under a page of theirs.
  // Its terminal writes styles for the size of its letters.
  'desktop/*': page("'none'", "'self' 'unsafe-inline'"),
  'assets/desktop.js': {
    contentType: 'text/javascript; charset=utf-8',
    content: async () => (await desktopPage()).script,
    headers: forEver,
  },
  'assets/desktop.css': {
    contentType: 'text/css; charset=utf-8',
    content: async () => (await desktopPage()).style,
    headers: forEver,
  },
  'assets/mark.svg': {
    contentType: 'image/svg+xml',
    content: async () => (await desktopPage()).mark,
    headers: { 'Cache-Control': 'public, max-age=86400' },
  },
} as const satisfies Record<string, Served>;
