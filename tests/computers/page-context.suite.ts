// What a real Chromium shows, told with an action: its elements where a click hits them, and nothing of
// passwords; of pages that mean harm no more than is bounded.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';
import { curiousPage, hostilePage, hungPage, usualPage } from './pages.ts';

interface Element {
  readonly tag: string;
  readonly role: string;
  readonly name: string;
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly href?: string;
}

export function pageContext(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  before(async () => {
    ground = theGround();
    id = await ground.desktop({ size: 'medium' });
    const pages = {
      usual: usualPage,
      curious: curiousPage,
      hostile: hostilePage,
      hung: hungPage,
    };
    for (const [name, html] of Object.entries(pages)) {
      const b64 = Buffer.from(html).toString('base64');
      await ground.run(id, `mkdir -p /srv/pages && base64 -d <<< ${b64} > /srv/pages/${name}.html`);
    }
    await ground.run(
      id,
      'cd /srv/pages && (setsid python3 -m http.server --bind 127.0.0.1 8000 > /dev/null 2>&1 &)',
    );
    await until('the pages are served', async () => {
      return (await ground.exec(id, 'curl --silent --fail 127.0.0.1:8000/usual.html')).code === 0;
    });
  });
  // A page that hangs would keep a processor busy while other suites run.
  after(() => ground.as.delete(`/computers/${id}`));

  const browse = (page: string) =>
    ground.run(
      id,
      `(setsid chromium --new-window http://127.0.0.1:8000/${page} > /dev/null 2>&1 &)`,
      { session: 'desktop' },
    );
  const told = async (json: object = { action: 'wait', duration: 0.01 }) => {
    const answer = await ground.as.post(`/computers/${id}/input?context=1`, json);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  /** What is on the desktop, once that is told in time. */
  const onScreen = () => until('the windows are told', async () => (await told()).context);
  /** The page, once it is there. */
  const shown = (url: string) =>
    until(`the page ${url} is told`, async () => {
      const { dom } = (await told()).context ?? {};
      return dom?.url.includes(url) === true && dom.elements.length > 0 ? dom : undefined;
    });
  const named = (dom: { elements: Element[] }, name: string): Element => {
    const found = dom.elements.find((element) => element.name === name);
    return found ?? assert.fail(`no ${name} in ${JSON.stringify(dom.elements)}`);
  };
  const clickOn = ({ x, y, width, height }: Element) => {
    const coordinate = [Math.floor(x + width / 2), Math.floor(y + height / 2)];
    return told({ action: 'left_click', coordinate });
  };
  const hit = async (name: string) => {
    await clickOn(named(await shown('usual'), name));
    await until(`${name} was hit`, async () => (await shown('usual')).title === `hit ${name}`);
  };

  test('wire-guest 2: a focused terminal has no page, and it is told why', async () => {
    await ground.run(id, '(setsid xfce4-terminal > /dev/null 2>&1 &)', { session: 'desktop' });
    const { context, context_error: error } = await until(
      'the terminal has the focus',
      async () => {
        const body = await told();
        return /terminal/i.test(body.context.focused?.class ?? '') ? body : undefined;
      },
    );
    assert.equal(context.dom, undefined);
    assert.equal(error, 'The focused window is not one of Chromium.');
    assert.ok(context.windows.length > 0);
  });

  test('wire-guest 2: what a page shows is told with its places, but no password', async () => {
    await browse('usual.html');
    // What is in its frame comes last; of a browser that is slow only a part is told.
    const dom = await until('all of it is there', async () => {
      const seen = await shown('usual');
      const whole = seen.elements.some(({ name }: Element) => name === 'Inner') && !seen.truncated;
      return whole ? seen : undefined;
    });
    assert.equal(dom.url, 'http://127.0.0.1:8000/usual.html');
    assert.equal(dom.title, 'Usual');
    assert.doesNotMatch(JSON.stringify(dom), /hunter2|sesame|unseen/);
    const lines = dom.elements.map(({ tag, role, name, text, href }: Element) =>
      [tag, role, name, text, href ?? ''].join('|'),
    );
    assert.deepEqual(lines, [
      'h1|heading|A usual page|A usual page|',
      'a|link|Away|Away|http://127.0.0.1:8000/usual.html#away',
      'button|button|Push|Push|',
      'input|textbox|Your name|Ada|',
      'input|textbox|Secret||',
      'input|textbox|Shown secret||',
      'input|checkbox|Agreed|checked|',
      'select|combobox|Colour|green|',
      'div|button|Role|Role|',
      'div|textbox|Notes|Dear diary|',
      'button|button|Shadow|Shadow|',
      'button|button|Inner|Inner|',
    ]);
  });

  test('wire-guest 2: a click in the middle of an element hits it, zoomed and moved too', async () => {
    for (const name of ['Push', 'Role', 'Shadow', 'Inner']) await hit(name);
    const { width } = named(await shown('usual'), 'Push');
    await told({ action: 'key', key: 'ctrl+plus' });
    await told({ action: 'key', key: 'ctrl+plus' });
    // By both steps: 110 and 125 percent.
    await until(
      'the page is larger',
      async () => named(await shown('usual'), 'Push').width > width * 1.15,
    );
    for (const name of ['Role', 'Inner']) await hit(name);
    await told({ action: 'key', key: 'ctrl+0' });
    await until('it is as before', async () => named(await shown('usual'), 'Push').width === width);
    const { id: window } = (await onScreen()).focused;
    const act = (json: object) => ground.as.post(`/computers/${id}/windows/${window}`, json);
    for (const action of ['maximize', 'unmaximize']) {
      await act({ action });
      await hit('Push');
      await hit('Shadow');
    }
    await act({ action: 'move', x: 120, y: 40 });
    await hit('Push');
    await hit('Role');
  });

  test('wire-guest 2: of several windows it is the page of the focused one', async () => {
    await browse('usual.html?second');
    await shown('usual.html?second');
    const { windows } = await onScreen();
    const browsers = windows.filter((window: { class: string }) => /chrom/i.test(window.class));
    assert.equal(browsers.length, 2);
    for (const { id: window } of [...browsers, ...browsers]) {
      await ground.as.post(`/computers/${id}/windows/${window}`, { action: 'focus' });
      const isSecond = window === browsers[1].id;
      await until('it is its page', async () => {
        const { dom } = (await told()).context;
        return dom !== undefined && dom.url.endsWith('?second') === isSecond;
      });
    }
  });

  test('wire-guest 2: a page finds nobody who debugs it, and no way into the browser', async () => {
    await browse('curious.html');
    const found = await until('the page has looked around', async () => {
      const [heading] = (await shown('curious')).elements;
      return heading.text === 'looking' ? undefined : heading.text;
    });
    assert.equal(found, 'webdriver false, reached 1, itself 1');
    const flags = await ground.run(id, 'cat /proc/$(pgrep -o -x chromium)/cmdline');
    const [, port] = /--remote-debugging-port=(\d+)/.exec(flags) ?? [];
    const url = `http://127.0.0.1:${port}/json/version`;
    assert.match(await ground.run(id, `curl --silent ${url}`), /Chrom/, 'root can');
    const asUser = await ground.exec(id, `runuser -u user -- curl --silent ${url}`);
    assert.equal(asUser.code, 7, 'nobody else can connect');
  });

  test('wire-guest 2: a page that means harm is told in bounds', async () => {
    await browse('hostile.html');
    // It may be looked at while it is still being written.
    const dom = await until('as much is told as may be', async () => {
      const seen = await shown('hostile');
      return seen.elements.length >= 150 ? seen : undefined;
    });
    assert.equal(dom.elements.length, 150);
    assert.equal(dom.truncated, true);
    assert.equal(dom.title, 'x'.repeat(512));
    assert.ok(dom.elements.some(({ tag }: Element) => tag === 'a'));
    for (const { name, text } of dom.elements) assert.ok(name.length <= 160 && text.length <= 240);
  });

  test('wire-guest 2: a page that hangs is told as such, and the windows all the same', async () => {
    await browse('hung.html');
    const { context, context_error: error } = await clickOn(named(await shown('hung'), 'Hang'));
    const hung =
      context.dom === undefined
        ? error
        : await until('it hangs', async () => {
            const body = await told();
            return body.context.dom === undefined ? body.context_error : undefined;
          });
    assert.equal(hung, 'The page did not answer in time.');
    assert.match(context.focused.title, /^Hung/);
  });

  test('wire-guest 2: what runs headless is left as it is', async () => {
    const page = 'http://127.0.0.1:8000/hung.html';
    const command = `chromium --headless --user-data-dir=/tmp/headless --dump-dom ${page}`;
    const patient = { session: 'desktop', timeout_s: 90 } as const;
    assert.match(await ground.run(id, command, patient), /Hang<\/button>/);
  });
}
