// The terminal tab: one session of the computer's, which outlives the page and comes back with it.

import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { type Place, socketUrl } from './place.ts';

const retryMs = 1_500;

export class TerminalTab {
  readonly #place: Place;
  readonly #target: HTMLElement;
  readonly #terminal = new Terminal({
    fontFamily: '"JetBrains Mono", ui-monospace, monospace',
    fontSize: 14,
    cursorBlink: true,
    theme: { background: '#171827', foreground: '#e9eaf6', cursor: '#f2a488' },
  });
  readonly #fit = new FitAddon();
  #socket: WebSocket | undefined;
  #begun = false;

  constructor(place: Place, target: HTMLElement) {
    this.#place = place;
    this.#target = target;
  }

  shown(): void {
    if (!this.#begun) this.#begin();
    this.#fit.fit();
    this.#terminal.focus();
  }

  #begin(): void {
    this.#begun = true;
    const terminal = this.#terminal;
    terminal.loadAddon(this.#fit);
    terminal.open(this.#target);
    this.#fit.fit();
    terminal.onData((text) => this.#send(new TextEncoder().encode(text)));
    terminal.onBinary((text) =>
      this.#send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))),
    );
    terminal.onResize(({ cols, rows }) =>
      this.#send(JSON.stringify({ type: 'resize', cols, rows })),
    );
    new ResizeObserver(() => {
      if (!this.#target.hidden && this.#target.clientWidth > 0) this.#fit.fit();
    }).observe(this.#target);
    this.#connect();
  }

  #connect(): void {
    const terminal = this.#terminal;
    const url = new URL(socketUrl(this.#place, 'terminal'));
    url.searchParams.set('cols', String(terminal.cols));
    url.searchParams.set('rows', String(terminal.rows));
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    let last: string | undefined;
    // What the session showed comes again, from the beginning.
    socket.addEventListener('open', () => terminal.reset());
    socket.addEventListener('message', ({ data }) => {
      if (data instanceof ArrayBuffer) terminal.write(new Uint8Array(data));
      else last = lineFor(JSON.parse(String(data)));
    });
    socket.addEventListener('close', () => {
      if (last === undefined) setTimeout(() => this.#connect(), retryMs);
      else this.#rest(last);
    });
  }

  /** The session is over, or somebody else has it: a key goes on. */
  #rest(line: string): void {
    this.#terminal.write(`\r\n\x1b[2m${line} Press a key to go on.\x1b[0m\r\n`);
    const again = this.#terminal.onData(() => {
      again.dispose();
      this.#connect();
    });
  }

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }
}

function lineFor(frame: {
  type: string;
  code?: number;
  reason?: string;
  message?: string;
}): string {
  if (frame.type === 'exit') return `The shell ended with ${frame.code}.`;
  return frame.message ?? frame.reason ?? 'The terminal was closed.';
}
