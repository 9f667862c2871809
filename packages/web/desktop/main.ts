// The page of a live desktop: `/embed/{id}` to watch, `/desktop/{id}` to control.

import { Clipboard } from './clipboard.ts';
import { EventsTab } from './events.ts';
import { placeOf } from './place.ts';
import { Screen } from './screen.ts';
import { showTabs } from './tabs.ts';
import { TerminalTab } from './terminal.ts';
import type { Notice } from './words.ts';

function part(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}

const place = placeOf(location);
const still = part('#still');

/** `picture`: the last there was. */
function tell(notice: Notice | undefined, picture?: string): void {
  const overlay = part('#notice');
  overlay.classList.toggle('away', notice === undefined);
  if (notice === undefined) {
    still.hidden = true;
    return;
  }
  overlay.dataset['kind'] = notice.kind;
  part('#notice h1').textContent = notice.title;
  part('#notice p').textContent = notice.text;
  if (picture !== undefined) {
    still.style.backgroundImage = `url("${picture}")`;
    still.hidden = false;
  }
  // What is over for good shows no more of it.
  if (notice.kind === 'end') still.hidden = true;
}

const clipboard = place.control
  ? new Clipboard(
      {
        button: part('#clipboard'),
        panel: part('#clip'),
        text: part('#text') as HTMLTextAreaElement,
      },
      () => screen,
    )
  : undefined;
const screen: Screen = new Screen({
  place,
  target: part('#screen'),
  tell,
  copied: (text) => clipboard?.copied(text),
});

document.title = `${place.computer} – Cubicle`;
if (place.control) {
  part('header').hidden = false;
  part('#name').textContent = place.computer;
  part('#whole').addEventListener('click', () => void part('main').requestFullscreen());
  const terminal = new TerminalTab(place, part('#shell'));
  const events = new EventsTab(place, part('#events'));
  showTabs(part('nav'), [
    { label: 'Desktop', panel: part('#desktop'), shown: () => screen.focus() },
    { label: 'Terminal', panel: part('#terminal'), shown: () => terminal.shown() },
    { label: 'Events', panel: part('#happenings'), shown: () => events.shown() },
  ]);
}
void screen.run();
