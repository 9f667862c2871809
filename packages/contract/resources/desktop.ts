// Seeing and driving a desktop: wire-guest sections 1, 2, 7 and 8.

import { z } from 'zod';
import { inputBody } from '../desktop/input.ts';
import { pageLimits } from '../guest/page.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { guestErrors, wakeErrors } from './exec.ts';

const desktopErrors = [...guestErrors, 'desktop_absent', 'desktop_refused'] as const;
const call = { role: 'member', reach: 'scope', cost: costs.guestCall } as const;

const whole = (most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .refine((value) => value >= 1 && value <= most, { error: `must be from 1 to ${most}` });

const region = z.string().transform((text, context) => {
  const [, x, y, width, height] = /^(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5})$/.exec(text) ?? [];
  const read = { x: Number(x), y: Number(y), width: Number(width), height: Number(height) };
  if (!(read.width >= 1 && read.height >= 1)) {
    context.issues.push({ code: 'custom', input: text, message: 'must be x,y,width,height' });
    return z.NEVER;
  }
  return read;
});

const scale = z
  .string()
  .regex(/^\d(\.\d{1,6})?$|^\.\d{1,6}$/)
  .transform(Number)
  .refine((value) => value > 0 && value <= 1, { error: 'must be above 0 and at most 1' });

const screenshotQuery = z
  .object({
    w: whole(65_535).optional(),
    fresh: z.enum(['1', 'true']).optional(),
    format: z.enum(['png', 'jpeg', 'jpg']).optional(),
    quality: whole(100).optional(),
    region: region.optional(),
    scale: scale.optional(),
    capture: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
  })
  .refine(({ w, scale: by }) => w === undefined || by === undefined, {
    path: ['scale'],
    error: 'does not go with w',
  })
  .refine(({ capture, fresh }) => capture === undefined || fresh === undefined, {
    path: ['fresh'],
    error: 'does not go with capture',
  })
  .refine(({ quality, format, w }) => quality === undefined || isJpeg(format, w), {
    path: ['quality'],
    error: 'goes with JPEG only',
  });
export type ScreenshotQuery = z.infer<typeof screenshotQuery>;

/** The default is PNG, and JPEG where a width is given. */
export function isJpeg(format: string | undefined, w: number | undefined): boolean {
  return format === undefined ? w !== undefined : format !== 'png';
}

const window = z
  .strictObject({
    id: z.string().regex(/^0x[0-9a-f]+$/),
    title: z.string(),
    class: z.string(),
    type: z.string(),
    pid: z.int().optional(),
    x: z.int(),
    y: z.int(),
    width: z.int(),
    height: z.int(),
    focused: z.boolean(),
    visible: z.boolean().describe('False when minimised.'),
  })
  .meta({ id: 'Window' });
export type Window = z.infer<typeof window>;

const pageDom = z
  .strictObject({
    url: z.string(),
    title: z.string(),
    truncated: z.boolean().describe('True when the page shows more than is told.'),
    elements: z
      .array(
        z.strictObject({
          tag: z.string(),
          role: z.string(),
          name: z.string(),
          text: z
            .string()
            .describe('Of a field what is in it, but for passwords; of a box `checked` or not.'),
          x: z.int(),
          y: z.int(),
          width: z.int(),
          height: z.int(),
          href: z.string().optional(),
        }),
      )
      .max(pageLimits.elements)
      .describe(
        'What can be used or stands out, in pixels of the screen: a click in the middle hits it.',
      ),
  })
  .meta({ id: 'PageContext' });
export type PageDom = z.infer<typeof pageDom>;

const inputDone = z
  .strictObject({
    ok: z.literal(true),
    mechanism: z.enum(['physical', 'unicode', 'mixed']).optional(),
    known: z.boolean().optional(),
    x: z.int().optional(),
    y: z.int().optional(),
    context: z
      .strictObject({
        windows: z.array(window),
        focused: window.nullable(),
        dom: pageDom.optional(),
      })
      .optional(),
    context_error: z.string().optional().describe('Why there is no `context`, or no `dom` in it.'),
  })
  .meta({ id: 'InputDone' });
export type InputDone = z.infer<typeof inputDone>;

const place = z.int().min(-32_768).max(32_767);
const side = z.int().min(1).max(32_767);

const windowBody = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.enum(['focus', 'raise', 'minimize', 'maximize', 'unmaximize', 'close']),
  }),
  z.strictObject({ action: z.literal('move'), x: place, y: place }),
  z.strictObject({ action: z.literal('resize'), width: side, height: side }),
]);

const clipboardText = z
  .string()
  .refine((text) => text.isWellFormed() && !text.includes('\0'), {
    error: 'must be well-formed Unicode without NUL',
    abort: true,
  })
  .refine((text) => new TextEncoder().encode(text).length <= limits.clipboard, {
    error: `must have at most ${limits.clipboard} bytes`,
  });

export const desktopRoutes = defineRoutes({
  getScreenshot: {
    ...call,
    role: 'viewer',
    method: 'GET',
    path: '/computers/{id}/screenshot',
    query: screenshotQuery,
    answer: { status: 200, schema: z.any(), mediaType: 'image/png' },
    errors: [...desktopErrors, 'query_refused', 'capture_stale', 'frame_unavailable'],
    summary: 'See the screen',
    prose:
      'PNG, or JPEG with `w` or `format=jpeg`. Cropped by `region`, then shrunk by `w` or `scale`. Without `fresh` a capture of up to 1.5 s may serve; `X-GC-Capture` names it, and `capture` cuts another part of the same while it is the newest. A suspended computer shows its last picture, marked `X-GC-Frame: suspended`. It wakes nothing and is no use.',
    source: 'wire-guest, section 1',
  },
  sendInput: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/input',
    query: z.object({ context: z.literal('1').optional() }),
    body: { schema: inputBody, cap: limits.jsonBody },
    answer: { status: 200, schema: inputDone },
    errors: [...desktopErrors, ...wakeErrors, 'query_refused', 'input_refused'],
    summary: 'Use mouse and keyboard',
    prose:
      'One action a call, in either vocabulary. A suspended computer is resumed. `context=1` adds what is there right afterwards, without waiting for anything to settle: the windows, and what the page shows if Chromium has the focus. That takes three seconds at most, and an action counts as done whether or not it can be told.',
    source: 'wire-guest, section 2',
  },
  listWindows: {
    ...call,
    role: 'viewer',
    method: 'GET',
    path: '/computers/{id}/windows',
    query: z.object({ include: z.literal('all').optional() }),
    answer: { status: 200, schema: z.strictObject({ windows: z.array(window) }) },
    errors: [...desktopErrors, 'query_refused'],
    summary: 'List windows',
    prose: 'The lowest first. `include=all` adds panels and the desktop itself.',
    source: 'wire-guest, section 7',
  },
  actOnWindow: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/windows/{window}',
    body: { schema: windowBody, cap: limits.jsonBody },
    answer: {
      status: 200,
      schema: z.strictObject({
        ok: z.literal(true),
        gone: z.boolean(),
        window: window.nullable(),
      }),
    },
    errors: [
      ...desktopErrors,
      ...wakeErrors,
      'window_unknown',
      'window_tiled',
      'window_unconfirmed',
    ],
    summary: 'Focus, raise, minimise, maximise, move, resize or close a window',
    prose:
      'The answer tells the window as it is afterwards, which may differ from what was asked for; `gone` when it closed. On a Wayland desktop a tiled window is neither moved nor resized (400), minimising puts it on the scratchpad, and maximising is full screen.',
    source: 'wire-guest, section 7',
  },
  getClipboard: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/clipboard',
    answer: { status: 200, schema: z.strictObject({ text: z.string() }) },
    errors: [...desktopErrors, 'clipboard_too_large'],
    summary: 'Read the clipboard',
    prose: 'As text; empty when there is none. It wakes nothing and is no use.',
    source: 'wire-guest, section 8',
  },
  setClipboard: {
    ...call,
    method: 'PUT',
    path: '/computers/{id}/clipboard',
    body: { schema: z.strictObject({ text: clipboardText }), cap: limits.jsonBody },
    answer: { status: 200, schema: z.strictObject({ ok: z.literal(true) }) },
    errors: [...desktopErrors, ...wakeErrors],
    summary: 'Fill the clipboard',
    prose:
      'Answered when it can be read back. Empty text clears it. A suspended computer is resumed.',
    source: 'wire-guest, section 8',
  },
});
