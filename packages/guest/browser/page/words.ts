// What elements are called and what is in them. What is typed as a password is not read.

import { pageLimits } from '@cubicle/contract/guest/page.ts';
import { inputType, isEditor } from './kinds.ts';
import { attribute, ofElement, ofNode, shown, tagOf } from './natives.ts';

/** Nodes looked at for the text of one element. */
const mostNodes = 200;
const buttons = new Set(['button', 'submit', 'reset']);
const boxes = new Set(['checkbox', 'radio']);

/** Elements of an inner page are of another kind of the same name: told by their tags. */
const fields: Record<string, object> = {
  input: HTMLInputElement.prototype,
  textarea: HTMLTextAreaElement.prototype,
  select: HTMLSelectElement.prototype,
};

export function textOf(element: Element): string {
  if (isSecret(element)) return '';
  const field = fields[tagOf(element)];
  return shown(field === undefined ? textIn(element) : fieldText(element, field), pageLimits.text);
}

export function nameOf(element: Element): string {
  return shown(naming(element), pageLimits.name);
}

/** In the order in which browsers name things for those who cannot see them. */
function naming(element: Element): string {
  const field = fields[tagOf(element)];
  const given = namedBy(element) || attribute(element, 'aria-label').trim();
  if (given !== '') return given;
  if (field !== undefined) {
    const isButton = field === fields['input'] && buttons.has(inputType(element));
    const label = isButton ? attribute(element, 'value').trim() : labelsOf(element, field);
    if (label !== '') return label;
  }
  const inside = field !== undefined || isEditor(element) ? '' : textIn(element);
  const others = ['alt', 'title', 'placeholder'].map((name) => attribute(element, name).trim());
  return inside || others.find((other) => other !== '') || '';
}

function namedBy(element: Element): string {
  const ids = attribute(element, 'aria-labelledby').split(/\s+/, 8).filter(Boolean);
  if (ids.length === 0) return '';
  const root = ofNode(element, 'getRootNode').call(element);
  const whole = root.nodeType === 9 ? Document.prototype : DocumentFragment.prototype;
  const found = ids.map((id) => whole.getElementById.call(root as Document & ShadowRoot, id));
  return joined(found.filter((each) => each !== null));
}

function labelsOf(element: Element, field: object): string {
  const labels = Reflect.get(field, 'labels', element) as NodeListOf<Element> | null;
  return joined([...(labels ?? [])].slice(0, 4));
}

function joined(elements: readonly Element[]): string {
  return elements.map(textIn).join(' ').trim();
}

function fieldText(element: Element, field: object): string {
  if (field === fields['select']) {
    const chosen = Reflect.get(field, 'selectedOptions', element) as HTMLCollectionOf<Element>;
    const labels = [...chosen].slice(0, 8).map((each) => String(ofNode(each, 'textContent')));
    return labels.map((label) => label.slice(0, pageLimits.text).trim()).join(', ');
  }
  if (field === fields['input'] && boxes.has(inputType(element))) {
    return Reflect.get(field, 'checked', element) === true ? 'checked' : 'unchecked';
  }
  return String(Reflect.get(field, 'value', element));
}

/** A password, or what shows as dots like one. A page that lets one be seen says what its field is for. */
function isSecret(element: Element): boolean {
  if (tagOf(element) === 'input') {
    if (inputType(element) === 'password') return true;
    if (/\b(current|new)-password\b/i.test(attribute(element, 'autocomplete'))) return true;
  }
  return isMasked(getComputedStyle(element));
}

function isMasked(style: CSSStyleDeclaration): boolean {
  const masked = style.getPropertyValue('-webkit-text-security');
  return masked !== '' && masked !== 'none';
}

const unread = new Set(['script', 'style', 'template', 'noscript', 'textarea', 'select', 'option']);

/** The text that is to be seen in it, and what stands for its pictures. */
function textIn(element: Element): string {
  const document = ofNode(element, 'ownerDocument') ?? globalThis.document;
  const each = NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT;
  const walker = Document.prototype.createTreeWalker.call(document, element, each, (node) =>
    isReadable(node) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT,
  );
  let text = '';
  for (let nodes = 0; nodes < mostNodes && text.length < 2 * pageLimits.text; nodes += 1) {
    const node = walker.nextNode();
    if (node === null) break;
    if (node.nodeType === 3) text += (node as Text).data.slice(0, 2 * pageLimits.text);
    else text += ` ${tagOf(node as Element) === 'img' ? attribute(node as Element, 'alt') : ''} `;
  }
  return text.trim();
}

function isReadable(node: Node): boolean {
  if (node.nodeType === 3) return true;
  const element = node as Element;
  if (unread.has(tagOf(element)) || isMasked(getComputedStyle(element))) return false;
  return ofElement(element, 'checkVisibility').call(element, { visibilityProperty: true });
}
