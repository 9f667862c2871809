// A computer whose desktop shows what desktops do, and a script in it that acts and measures there.

import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { BenchService } from '../service.ts';

const script = '/tmp/guest.py';

export class BenchGuest {
  readonly service: BenchService;
  readonly id: string;

  private constructor(service: BenchService, id: string) {
    this.service = service;
    this.id = id;
  }

  static async create(service: BenchService): Promise<BenchGuest> {
    const { id } = await service.good('POST', '/computers', { size: 'medium' });
    await service.desktopUp(id);
    const guest = new BenchGuest(service, id);
    await guest.put(script, await readFile(new URL('./guest.py', import.meta.url)));
    return guest;
  }

  async put(path: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
    const answer = await this.service.raw(
      'PUT',
      `/computers/${this.id}/files?path=${path}`,
      content,
    );
    if (!answer.ok) throw new Error(await answer.text());
  }

  /** A window full of text, and one with icons. */
  async showSomething(): Promise<void> {
    const text = 'xfce4-terminal --geometry 100x30+40+40 -x sh -c "ls -lR /etc; sleep 9999"';
    await this.begin(text);
    await this.begin('thunar /etc');
    while ((await this.windows()).length < 2) await pause(100);
    // They are drawn a moment after they are there.
    await pause(3_000);
  }

  async windows() {
    return (await this.service.good('GET', `/computers/${this.id}/windows`)).windows;
  }

  /** The numbers that the script prints. */
  async numbers(...words: string[]): Promise<number[]> {
    const printed = await this.service.run(this.id, `python3 ${script} ${words.join(' ')}`);
    return printed.trim().split('\n').map(Number);
  }

  async begin(command: string): Promise<void> {
    const wish = { command, session: 'desktop', background: true };
    await this.service.good('POST', `/computers/${this.id}/exec`, wish);
  }

  /** The script, until the computer ends. */
  async act(word: string): Promise<void> {
    await this.begin(`python3 ${script} ${word}`);
  }

  async address(of: 'events_url' | 'terminal_url'): Promise<string> {
    return (await this.service.good('GET', `/computers/${this.id}`))[of];
  }
}
