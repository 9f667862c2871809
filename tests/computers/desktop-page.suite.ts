// The pages of a live desktop in a real browser, on a real computer.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';

const executablePath = '/usr/bin/chromium';
/** Why there is nothing to look at pages with; undefined where there is. */
export const noBrowser = existsSync(executablePath)
  ? undefined
  : `there is no ${executablePath}; it comes with \`apt install chromium\``;

const themes = ['light', 'dark'] as const;
/** For all that is waited for: it tells a hang from a slow machine and nothing else. */
const hangMs = 90_000;

export function desktopPages(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let browser: Browser;
  let id: string;
  before(async () => {
    ground = theGround();
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: hangMs });
    id = await ground.desktop();
  });
  after(() => browser?.close());

  const vnc = async (as = ground.as) => (await as.get(`/computers/${id}`)).body.vnc;
  const controlPage = async () =>
    `${ground.service.origin}/desktop/${id}#token=${(await vnc()).token}`;

  /** In both themes; whatever a page complains of, and whatever it asks for, is kept. */
  async function opened(url: string): Promise<Watched[]> {
    return Promise.all(themes.map((theme) => Watched.open(browser, url, theme)));
  }

  async function shots(all: readonly Watched[], name: string): Promise<void> {
    const folder = process.env['CUBICLE_TEST_SCREENS'];
    if (folder === undefined) return;
    await mkdir(folder, { recursive: true });
    for (const { page, theme } of all) {
      // What fades has faded.
      await page.waitForTimeout(400);
      await page.screenshot({ path: join(folder, `page-${name}-${theme}.png`) });
    }
  }

  test('wire-guest 10: the embedded page shows the desktop, and tells suspended, stopped and started apart', async () => {
    const { embed_url: url, view_token: token } = await vnc();
    const all = await opened(url);
    for (const each of all) await each.connected();
    await shots(all, 'connected');
    const picture = await all[0]?.page.evaluate(
      `(() => { const c = document.querySelector('#screen canvas'); return [c.width, c.height]; })()`,
    );
    assert.deepEqual(picture, [1280, 800]);

    await ground.post(`/computers/${id}/suspend`);
    for (const each of all) await each.says('Suspended');
    await shots(all, 'suspended');
    await ground.post(`/computers/${id}/start`);
    for (const each of all) await each.connected();

    await ground.post(`/computers/${id}/stop?force=true`);
    for (const each of all) await each.says('Stopped');
    await shots(all, 'stopped');
    await ground.post(`/computers/${id}/start`);
    for (const each of all) await each.connected();
    for (const each of all) {
      each.assertQuiet(token);
      await each.page.close();
    }
  });

  test('wire-guest 10: on the page that controls, the keyboard, the pointer and the clipboard reach the desktop', async () => {
    await ground.desktopReady(id);
    const [one, other] = (await opened(await controlPage())) as [Watched, Watched];
    await one.connected();
    await other.connected();
    await shots([one, other], 'control');
    const seen = (command: string) => ground.run(id, command, { session: 'desktop' });
    const canvas = one.page.locator('#screen canvas');
    await canvas.hover({ position: { x: 200, y: 150 } });
    await until('the pointer moved', async () => {
      const [, x = 0, y = 0] = (
        /x:(\d+) y:(\d+)/.exec(await seen('xdotool getmouselocation')) ?? []
      ).map(Number);
      return x > 100 && x < 400 && y > 100 && y < 300;
    });
    await ground.as.post(`/computers/${id}/exec`, {
      command: 'xfce4-terminal --disable-server --geometry 60x12 -x sh -c "cat >/tmp/typed"',
      session: 'desktop',
      background: true,
    });
    await until('it takes keys', async () => (await ground.exec(id, 'pgrep -x cat')).code === 0);
    await seen('xdotool search --sync --onlyvisible --class xfce4-terminal windowactivate --sync');
    await one.page.keyboard.type('hello there');
    await one.page.keyboard.press('Enter');
    await one.page.keyboard.press('Control+d');
    await until('it was typed', async () => (await seen('cat /tmp/typed')) === 'hello there');
    await one.page.click('#clipboard');
    await one.page.fill('#text', 'Grüße from the page');
    const clip = () => seen('timeout 2 xclip -selection clipboard -o || true');
    await until('it can be pasted', async () => (await clip()) === 'Grüße from the page');
    await shots([one, other], 'clipboard');
    await seen("printf 'back again' | xclip -selection clipboard -i");
    await until('it comes back', async () => (await one.page.inputValue('#text')) === 'back again');
    for (const each of [one, other]) await each.page.close();
  });

  test('Part 4 Terminal, Part 6.2: beside it are a terminal and what happens on the computer', async () => {
    const url = await controlPage();
    const [one, other] = (await opened(url)) as [Watched, Watched];
    await one.connected();
    await one.page.click('text=Events');
    await one.page.click('text=Terminal');
    const lines = one.page.locator('#shell .xterm-rows');
    await lines.getByText('user@').first().waitFor();
    await one.page.keyboard.type(
      'echo from-$((40+2)); touch ~/made-here; xclip -i < /etc/hostname\n',
    );
    await lines.getByText('from-42', { exact: true }).waitFor();
    await shots([one], 'terminal');
    await one.page.click('text=Events');
    const events = one.page.locator('#events li');
    await events.filter({ hasText: 'clipboard.changed' }).first().waitFor();
    await shots([one], 'events');
    one.assertQuiet(new URL(url).hash.replace('#token=', ''));
    for (const each of [one, other]) await each.page.close();
  });

  test('wire-guest 10: a page says when it was revoked, when its computer is gone, and when it opens nothing', async () => {
    const made = await ground.as.post('/api-keys', { name: 'for a while' });
    const given = await vnc(ground.service.as(made.body.raw));
    const revoked = await opened(given.embed_url);
    for (const each of revoked) await each.connected();
    await ground.as.delete(`/api-keys/${made.body.id}`);
    for (const each of revoked) await each.says(/Access was withdrawn|This link opens nothing/);
    await shots(revoked, 'revoked');
    const late = await opened(given.embed_url);
    for (const each of late) await each.says('This link opens nothing');
    await shots(late, 'unknown');
    const gone = await opened((await vnc()).embed_url);
    for (const each of gone) await each.connected();
    await ground.as.delete(`/computers/${id}`);
    for (const each of gone) await each.says(/Deleted|This link opens nothing/);
    await shots(gone, 'gone');
    for (const each of [...revoked, ...late, ...gone]) each.assertQuiet(given.view_token);
  });
}

class Watched {
  readonly page: Page;
  readonly theme: string;
  readonly #complaints: string[] = [];
  readonly #requests: string[] = [];

  private constructor(page: Page, theme: string) {
    this.page = page;
    this.theme = theme;
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) this.#complaints.push(message.text());
    });
    page.on('pageerror', (error) => this.#complaints.push(error.message));
    page.on('request', (request) => this.#requests.push(request.url().split('#')[0] as string));
  }

  static async open(
    browser: Browser,
    url: string,
    theme: (typeof themes)[number],
  ): Promise<Watched> {
    const page = await browser.newPage({
      colorScheme: theme,
      viewport: { width: 1100, height: 720 },
    });
    const watched = new Watched(page, theme);
    page.setDefaultTimeout(hangMs);
    await page.goto(url);
    return watched;
  }

  async connected(): Promise<void> {
    await this.page.waitForSelector('#notice.away', { state: 'attached' });
    await this.page.waitForSelector('#screen canvas');
  }

  /** A page too slow to read why it was cut off learns from its next look that the link is over. */
  async says(title: string | RegExp): Promise<void> {
    const heading = this.page.locator('#notice:not(.away) h1', { hasText: title });
    await heading.waitFor();
  }

  /** No complaint, nothing from elsewhere, and the credential in no request but the WebSocket's. */
  assertQuiet(token: string): void {
    assert.deepEqual(this.#complaints, []);
    const origin = new URL(this.page.url()).origin;
    for (const url of this.#requests) {
      assert.ok(url.startsWith(origin) || url.startsWith('data:') || url.startsWith('blob:'), url);
      assert.ok(!url.includes(token), 'the credential is in a request line');
    }
  }
}
