// Which elements are told of, and what they are.

import { attribute, has, tagOf } from './natives.ts';

const ofTags: Record<string, string> = {
  button: 'button',
  summary: 'button',
  textarea: 'textbox',
  h1: 'heading',
  h2: 'heading',
  h3: 'heading',
  h4: 'heading',
  h5: 'heading',
  h6: 'heading',
};

const ofInputs: Record<string, string> = {
  button: 'button',
  submit: 'button',
  reset: 'button',
  image: 'button',
  checkbox: 'checkbox',
  radio: 'radio',
  range: 'slider',
  number: 'spinbutton',
  search: 'searchbox',
  date: '',
  'datetime-local': '',
  month: '',
  week: '',
  time: '',
  color: '',
  file: '',
};

/** Of the roles that a page may give, those of things to use or to notice; not those that divide a page. */
const toldRoles = new Set(
  (
    'alert alertdialog button checkbox combobox dialog gridcell heading img link listbox menuitem ' +
    'menuitemcheckbox menuitemradio option progressbar radio searchbox slider spinbutton status switch ' +
    'tab textbox tooltip treeitem'
  ).split(' '),
);

/** Its role, which may be empty; nothing for an element that is not told of. */
export function roleOf(element: Element): string | undefined {
  const given = attribute(element, 'role').trim().split(/\s/, 1)[0]?.toLowerCase() ?? '';
  if (toldRoles.has(given)) return given;
  const tag = tagOf(element);
  if (tag === 'a' && has(element, 'href')) return 'link';
  if (tag === 'input') return inputRole(element);
  if (tag === 'select') return isList(element) ? 'listbox' : 'combobox';
  if (Object.hasOwn(ofTags, tag)) return ofTags[tag];
  if (isEditor(element)) return 'textbox';
  const used = has(element, 'onclick') || /^\s*\d/.test(attribute(element, 'tabindex'));
  return used || tag === 'iframe' ? '' : undefined;
}

export function inputType(element: Element): string {
  return attribute(element, 'type').toLowerCase();
}

function inputRole(element: Element): string {
  const type = inputType(element);
  if (Object.hasOwn(ofInputs, type)) return ofInputs[type] ?? '';
  return has(element, 'list') ? 'combobox' : 'textbox';
}

function isList(element: Element): boolean {
  return has(element, 'multiple') || Number(attribute(element, 'size')) > 1;
}

/** Its outermost element alone: what is inside inherits. */
export function isEditor(element: Element): boolean {
  return has(element, 'contenteditable') && attribute(element, 'contenteditable') !== 'false';
}
