// The clipboard of whoever controls: by the browser's own where that is allowed, and always by hand in a
// panel beside the desktop.

import type { Screen } from './screen.ts';

export interface ClipboardParts {
  readonly button: HTMLElement;
  readonly panel: HTMLElement;
  readonly text: HTMLTextAreaElement;
}

export class Clipboard {
  readonly #parts: ClipboardParts;
  readonly #screen: () => Screen;
  /** What both sides have: it is not sent to and fro. */
  #known = '';

  constructor(parts: ClipboardParts, screen: () => Screen) {
    this.#parts = parts;
    this.#screen = screen;
    const { button, panel, text } = parts;
    button.addEventListener('click', () => {
      panel.hidden = !panel.hidden;
      button.setAttribute('aria-expanded', String(!panel.hidden));
      if (panel.hidden) screen().focus();
      else text.focus();
    });
    text.addEventListener('input', () => this.#give(text.value));
    window.addEventListener('focus', () => void this.#read());
  }

  /** On the computer. */
  copied(text: string): void {
    this.#known = text;
    this.#parts.text.value = text;
    // Refused without focus or leave; the panel has it then.
    void navigator.clipboard?.writeText(text).catch(() => {});
  }

  /** Without asking for leave: only where it was given. */
  async #read(): Promise<void> {
    try {
      const name = 'clipboard-read' as PermissionName;
      const { state } = await navigator.permissions.query({ name });
      if (state !== 'granted') return;
      const text = await navigator.clipboard.readText();
      this.#parts.text.value = text;
      this.#give(text);
    } catch {
      // A browser without it has the panel.
    }
  }

  #give(text: string): void {
    if (text === this.#known || text === '') return;
    this.#known = text;
    this.#screen().paste(text);
  }
}
