// What of a document is to be seen: the part of its view that nothing around it hides, and what a click
// in it would hit.

import { ofDocument, ofElement, ofNode, tagOf } from './natives.ts';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Hole {
  readonly view: View;
  readonly frame: Element;
  /** Where the inner document's corner lies in the outer one. */
  readonly x: number;
  readonly y: number;
}

/** Pieces of one element, such as the lines of a link. */
const mostPieces = 8;

export class View {
  readonly document: Document;
  /** What is to be seen of it, in its own coordinates. */
  readonly #seen: Box;
  readonly #hole: Hole | undefined;

  constructor(document: Document, seen: Box, hole?: Hole) {
    this.document = document;
    this.#seen = seen;
    this.#hole = hole;
  }

  /** The view into a frame whose document may be read; nothing of another site's. */
  into(frame: Element): View | undefined {
    const document = documentIn(frame);
    const hole = ofElement(frame, 'getBoundingClientRect').call(frame);
    const seen = common(hole, this.#seen);
    if (document === null || seen === undefined) return undefined;
    const style = getComputedStyle(frame);
    const x = hole.x + ofElement(frame, 'clientLeft') + Number.parseFloat(style.paddingLeft);
    const y = hole.y + ofElement(frame, 'clientTop') + Number.parseFloat(style.paddingTop);
    return new View(document, moved(seen, -x, -y), { view: this, frame, x, y });
  }

  /** The first piece of it whose middle a click would hit, in coordinates of the outermost document. */
  find(element: Element): Box | undefined {
    const pieces = ofElement(element, 'getClientRects').call(element);
    for (let at = 0; at < Math.min(pieces.length, mostPieces); at += 1) {
      const box = common(pieces[at] as Box, this.#seen);
      if (box === undefined) continue;
      if (this.#hits(element, box.x + box.width / 2, box.y + box.height / 2)) return this.#out(box);
    }
    return undefined;
  }

  #hits(element: Element, x: number, y: number): boolean {
    const root = ofNode(element, 'getRootNode').call(element);
    const whole = root.nodeType === 9 ? Document.prototype : ShadowRoot.prototype;
    const hit = whole.elementFromPoint.call(root as Document & ShadowRoot, x, y);
    if (hit === null || !(isIn(element, hit) || isLabel(hit, element))) return false;
    const hole = this.#hole;
    return hole === undefined || hole.view.#hits(hole.frame, x + hole.x, y + hole.y);
  }

  #out(box: Box): Box {
    const hole = this.#hole;
    return hole === undefined ? box : hole.view.#out(moved(box, hole.x, hole.y));
  }
}

/** The outermost one: what fingers have zoomed to is a part of it. */
export function outermost(): View {
  const zoomed = globalThis.visualViewport;
  const seen =
    zoomed === null
      ? { x: 0, y: 0, width: innerWidth, height: innerHeight }
      : { x: zoomed.offsetLeft, y: zoomed.offsetTop, width: zoomed.width, height: zoomed.height };
  return new View(globalThis.document, seen);
}

function documentIn(frame: Element): Document | null {
  try {
    const inner = Reflect.get(HTMLIFrameElement.prototype, 'contentDocument', frame);
    return inner === null || ofDocument(inner, 'documentElement') === null ? null : inner;
  } catch {
    return null;
  }
}

function isIn(element: Element, hit: Element): boolean {
  return ofNode(element, 'contains').call(element, hit);
}

/** A box that is drawn by its label. */
function isLabel(hit: Element, element: Element): boolean {
  const label = ofElement(hit, 'closest').call(hit, 'label');
  return (
    label !== null &&
    tagOf(label) === 'label' &&
    Reflect.get(HTMLLabelElement.prototype, 'control', label) === element
  );
}

function moved({ x, y, width, height }: Box, byX: number, byY: number): Box {
  return { x: x + byX, y: y + byY, width, height };
}

/** At least a pixel of it. */
function common(a: Box, b: Box): Box | undefined {
  const x = Math.max(a.x, b.x);
  const y = Math.max(a.y, b.y);
  const width = Math.min(a.x + a.width, b.x + b.width) - x;
  const height = Math.min(a.y + a.height, b.y + b.height) - y;
  return width >= 1 && height >= 1 ? { x, y, width, height } : undefined;
}
