// The views of a computer beside each other. With one there is nothing to choose, and nothing is shown.

export interface Tab {
  readonly label: string;
  readonly panel: HTMLElement;
  /** Called each time it comes to the front. */
  readonly shown?: () => void;
}

export function showTabs(nav: HTMLElement, tabs: readonly Tab[]): void {
  const buttons = tabs.map(({ label }) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.role = 'tab';
    button.textContent = label;
    return button;
  });
  const choose = (chosen: number) => {
    tabs.forEach(({ panel, shown }, i) => {
      panel.hidden = i !== chosen;
      buttons[i]?.setAttribute('aria-selected', String(i === chosen));
      if (i === chosen) shown?.();
    });
  };
  buttons.forEach((button, i) => button.addEventListener('click', () => choose(i)));
  nav.replaceChildren(...buttons);
  nav.hidden = tabs.length < 2;
  choose(0);
}
