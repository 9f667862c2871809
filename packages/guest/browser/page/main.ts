// Reads what a page shows. Runs inside the page in a world of its own: nothing that the page's scripts
// changed is met here, only its elements, which are many and anywhere.

import { pageLimits, type PageSeen } from '@cubicle/contract/guest/page.ts';
import { roleOf } from './kinds.ts';
import { ofDocument, ofElement, shown, tagOf } from './natives.ts';
import { outermost, type View } from './view.ts';
import { nameOf, textOf } from './words.ts';

type Found = PageSeen['elements'][number];

/** Nobody waits longer for one page. */
const mostMs = 1_000;
/** Elements between two looks at the clock. */
const stride = 64;
const mostDepth = 8;

/** Nothing when the page is not to be seen. */
export default function read(): PageSeen | null {
  const { document } = globalThis;
  if (ofDocument(document, 'visibilityState') !== 'visible') return null;
  const zoomed = globalThis.visualViewport;
  const reading = new Reading();
  reading.read(outermost(), document, 0);
  return {
    url: shown(location.href, pageLimits.url),
    title: shown(ofDocument(document, 'title'), pageLimits.title),
    truncated: reading.truncated,
    focused: ofDocument(document, 'hasFocus').call(document),
    window: { x: screenX, y: screenY, width: outerWidth, height: outerHeight },
    width: innerWidth,
    height: innerHeight,
    ratio: devicePixelRatio,
    zoomed: {
      x: zoomed?.offsetLeft ?? 0,
      y: zoomed?.offsetTop ?? 0,
      scale: zoomed?.scale ?? 1,
    },
    elements: reading.found,
  };
}

class Reading {
  readonly found: Found[] = [];
  truncated = false;
  readonly #endsAt = performance.now() + mostMs;
  #looked = 0;

  read(view: View, root: Node, depth: number): void {
    const only = NodeFilter.SHOW_ELEMENT;
    const walker = Document.prototype.createTreeWalker.call(view.document, root, only);
    while (!this.truncated && walker.nextNode() !== null) {
      this.#looked += 1;
      if (this.#looked % stride === 0 && performance.now() > this.#endsAt) this.truncated = true;
      else this.#element(view, walker.currentNode as Element, depth);
    }
  }

  #element(view: View, element: Element, depth: number): void {
    const inner = depth < mostDepth ? ofElement(element, 'shadowRoot') : null;
    const frame = depth < mostDepth && tagOf(element) === 'iframe' ? view.into(element) : undefined;
    const found = frame === undefined ? seen(view, element) : undefined;
    if (found !== undefined && this.found.length === pageLimits.elements) this.truncated = true;
    else if (found !== undefined) this.found.push(found);
    if (inner !== null) this.read(view, inner, depth + 1);
    if (frame !== undefined) this.read(frame, frame.document, depth + 1);
  }
}

function seen(view: View, element: Element): Found | undefined {
  try {
    const role = roleOf(element);
    const box = role === undefined ? undefined : view.find(element);
    if (role === undefined || box === undefined) return undefined;
    const { x, y, width, height } = box;
    const tag = shown(tagOf(element), pageLimits.tag);
    const [name, text, href] = [nameOf(element), textOf(element), hrefOf(element)];
    return { tag, role, name, text, href, x, y, width, height };
  } catch {
    // An element that answers otherwise than its kind does.
    return undefined;
  }
}

/** Of links, but those in drawings. Half an address would lead elsewhere. */
function hrefOf(element: Element): string | null {
  const isHtml = ofElement(element, 'namespaceURI') === 'http://www.w3.org/1999/xhtml';
  if (tagOf(element) !== 'a' || !isHtml) return null;
  const href = Reflect.get(HTMLAnchorElement.prototype, 'href', element);
  return href === '' || href.length > pageLimits.href ? null : href.toWellFormed();
}
