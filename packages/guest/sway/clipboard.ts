// The clipboard for callers, by the programs that come with Wayland. `wl-copy` stays behind to give away
// what was written, until another program puts something else there.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { Turns } from '../desktop/waiting.ts';
import type { Programs } from './programs.ts';

/** Bytes of UTF-8 (wire-guest section 8). */
const mostBytes = 131_072;
const plainText = 'text/plain;charset=utf-8';

export class SwayClipboard {
  readonly #programs: Programs;
  readonly #turns = new Turns();

  constructor(programs: Programs) {
    this.#programs = programs;
  }

  async read(context: Context): Promise<string> {
    const paste = ['wl-paste', '--no-newline', '--type', 'text'] as const;
    const { code, out } = await this.#programs.run(context, paste, mostBytes);
    // It fails where there is nothing, or nothing that is text.
    return code === 0 ? out.toString('utf8') : '';
  }

  write(context: Context, text: string): Promise<void> {
    return this.#turns.take(context, async () => {
      if (Buffer.byteLength(text) > mostBytes) throw new DisplayError('too_large', 'the text');
      const copy =
        text === ''
          ? (['wl-copy', '--clear'] as const)
          : (['wl-copy', '--type', plainText] as const);
      const { code } = await this.#programs.run(context, copy, 0, text);
      if (code !== 0) throw new DisplayError('lost', 'the compositor does not take it');
      if ((await this.read(context)) !== text) {
        throw new DisplayError('contention', 'another program took the clipboard');
      }
    });
  }
}
