// Properties of documents and elements as the browser has them: in a document or a form, a field or a
// picture named `body` or `children` stands before the property of that name, in every world.

export function ofDocument<Name extends keyof Document>(
  document: Document,
  name: Name,
): Document[Name] {
  return Reflect.get(Document.prototype, name, document);
}

export function ofElement<Name extends keyof Element>(element: Element, name: Name): Element[Name] {
  return Reflect.get(Element.prototype, name, element);
}

export function ofNode<Name extends keyof Node>(node: Node, name: Name): Node[Name] {
  return Reflect.get(Node.prototype, name, node);
}

export function attribute(element: Element, name: string): string {
  return Element.prototype.getAttribute.call(element, name) ?? '';
}

export function has(element: Element, name: string): boolean {
  return Element.prototype.hasAttribute.call(element, name);
}

export function tagOf(element: Element): string {
  return ofElement(element, 'localName').toLowerCase();
}

/** On one line, cut between characters. */
export function shown(text: string, most: number): string {
  // More is looked at than is shown: blanks go.
  const line = text
    .slice(0, 4 * most)
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return (line.length > most ? line.slice(0, most) : line).toWellFormed().trimEnd();
}
