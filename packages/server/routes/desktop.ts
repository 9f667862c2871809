import type { desktopRoutes } from '@cubicle/contract/resources/desktop.ts';
import type { Authority } from '../app/authority.ts';
import type { Caller, Desktop } from '../app/desktop.ts';
import type { Handlers } from './handler.ts';
import { Reply } from './reply.ts';

const passed = {
  'content-type': 'Content-Type',
  'content-length': 'Content-Length',
  'x-gc-capture': 'X-GC-Capture',
  'x-gc-capture-size': 'X-GC-Capture-Size',
  'x-gc-frame': 'X-GC-Frame',
} as const;

export function desktopHandlers(desktop: Desktop): Handlers<typeof desktopRoutes> {
  const by = (call: {
    authority: Authority;
    parameters: { id: string };
    signal: AbortSignal;
  }): Caller => ({ authority: call.authority, id: call.parameters.id, signal: call.signal });

  return {
    getScreenshot: async (call) => {
      const response = await desktop.screenshot(by(call), call.query);
      const headers: Record<string, string> = {};
      for (const [name, told] of Object.entries(passed)) {
        const value = response.headers[name];
        if (typeof value === 'string') headers[told] = value;
      }
      return new Reply({ headers, bytes: response });
    },
    sendInput: (call) => desktop.input(by(call), call.body, call.query.context === '1'),
    listWindows: async (call) => ({
      windows: await desktop.windows(by(call), call.query.include === 'all'),
    }),
    actOnWindow: (call) => desktop.actOnWindow(by(call), call.parameters.window, call.body),
    getClipboard: (call) => desktop.clipboard(by(call)),
    setClipboard: async (call) => {
      await desktop.setClipboard(by(call), call.body.text);
      return { ok: true };
    },
  };
}
