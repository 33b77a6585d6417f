import { blockNames, collect, findFirst, type HtmlElement, HtmlText, hasAncestor, textOf, textStart } from '../tree.ts';
import { marks } from './marks.ts';

/** Marks references to footnotes and the notes themselves with a common label, and removes the links back. */
export function plainNotes(root: HtmlElement): void {
  for (const note of collect(root, isInlineNote).slice(0, inlineNotesMax)) placeBelow(note);
  const references = collect(root, isReference);
  if (references.length === 0) return;
  const byId = new Map<string, HtmlElement>();
  for (const element of collect(root, ({ attributes }) => attributes.id !== undefined))
    if (!byId.has(element.attributes.id ?? '')) byId.set(element.attributes.id ?? '', element);
  const labels = new Map<HtmlElement, string>();
  const used = new Set<string>();
  for (const reference of references) {
    const note = noteOf(byId, reference);
    if (note === undefined) continue;
    let label = labels.get(note);
    if (label === undefined) {
      label = labelOf(textOf(reference), used);
      labels.set(note, label);
    }
    mark(reference, label);
  }
  for (const [note, label] of labels) plainNote(note, label);
}

function isReference({ name, attributes, parent }: HtmlElement): boolean {
  const { href, role, rel } = attributes;
  if (name !== 'a' || href === undefined || !href.includes('#')) return false;
  if (role === 'doc-noteref' || rel === 'footnote' || attributes['data-footnote-ref'] !== undefined) return true;
  const classes = `${attributes.class ?? ''} ${parent?.attributes.class ?? ''}`;
  if (/(?:^|\s)(?:footnote-ref|footnote-reference|footnote)(?:\s|$)/.test(classes)) return true;
  return parent?.name === 'sup' && /#(?:.*[-_:])?(?:fn|footnote)[-_:]?\w*$/.test(href);
}

/** The element with the id to which a reference leads, unless it is only an anchor in running text. */
function noteOf(byId: Map<string, HtmlElement>, { attributes }: HtmlElement): HtmlElement | undefined {
  const id = (attributes.href ?? '').replace(/^[^#]*#/, '');
  const target = byId.get(id) ?? byId.get(safeDecode(id));
  if (target === undefined) return undefined;
  if (target.name === 'dt') {
    const siblings = target.parent?.children.filter((child) => child.kind === 'element') ?? [];
    const next = siblings[siblings.indexOf(target) + 1];
    return next?.name === 'dd' ? next : undefined;
  }
  const note = target.name === 'a' || target.name === 'sup' ? boxThatStartsWith(target) : target;
  return /^(?:li|div|aside|p|dd|section)$/.test(note.name) ? note : undefined;
}

const signCharactersMax = 20;

/** The paragraph or box that begins with an anchor: `<p><sup><a id="fn1">1)</a></sup> The note.` */
function boxThatStartsWith(anchor: HtmlElement): HtmlElement {
  let box = anchor;
  while (box.parent !== undefined && !blockNames.has(box.name)) box = box.parent;
  const sign = textOf(anchor);
  return sign !== '' && sign.length <= signCharactersMax && textStart(box, sign.length) === sign ? box : anchor;
}

/** Moving a note takes as long as its section has parts. */
const inlineNotesMax = 500;

/** LaTeXML writes a note within the text that it belongs to. */
function isInlineNote({ attributes }: HtmlElement): boolean {
  return /(?:^|\s)ltx_role_footnote(?:\s|$)/.test(attributes.class ?? '');
}

/** Moves a note below its paragraph, and leaves a reference. */
function placeBelow(note: HtmlElement): void {
  const content = collect(note, ({ attributes }) => /(?:^|\s)ltx_note_content(?:\s|$)/.test(attributes.class ?? ''))[0];
  const sign = findFirst(note, 'sup');
  let block: HtmlElement = note;
  while (block.parent !== undefined && !blockNames.has(block.name)) block = block.parent;
  const box = block.parent;
  if (content === undefined || sign === undefined || box === undefined || block === note) return;
  const label = textOf(sign);
  if (!/^\w{1,20}$/.test(label)) return;
  const text = content.children.filter((child) => child.kind === 'text' || !/^(?:\d+|\W*)$/.test(textOf(child)));
  note.name = 'a';
  note.attributes = { [marks.noteRef]: label };
  note.children = [new HtmlText(label)];
  const below: HtmlElement = {
    kind: 'element',
    name: 'div',
    attributes: { [marks.note]: label },
    children: text,
    parent: box,
  };
  for (const child of text) if (child.kind === 'element') child.parent = below;
  box.children.splice(box.children.indexOf(block) + 1, 0, below);
}

function safeDecode(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

/** The number or letter that the page shows, or the next free number. */
function labelOf(text: string, used: Set<string>): string {
  const shown = /^\W*(\w{1,20})\W*$/.exec(text)?.[1];
  let label = shown ?? '1';
  for (let number = used.size + 1; used.has(label); number++) label = String(number);
  used.add(label);
  return label;
}

function mark(reference: HtmlElement, label: string): void {
  const { parent } = reference;
  const isAlone =
    parent?.name === 'sup' && parent.children.every((child) => child === reference || child.kind === 'text');
  const whole = isAlone ? parent : reference;
  whole.name = 'a';
  whole.attributes = { [marks.noteRef]: label };
  whole.children = [new HtmlText(label)];
}

function plainNote(note: HtmlElement, label: string): void {
  dropBacklinks(note);
  const list = note.parent;
  if (note.name === 'dd' && list !== undefined)
    list.children = list.children.filter((child) => !isLabelOf(child, note));
  note.name = 'div';
  note.attributes = { [marks.note]: label };
  if (list === undefined || !/^(?:ol|ul|dl)$/.test(list.name)) return;
  list.name = 'div';
  list.attributes = {};
  // A line or a heading for screen readers separates the notes from the text, which their marks do as well.
  const box = list.parent;
  if (box !== undefined && !hasAncestor(list, ({ name }) => name === 'li')) dropSeparator(box, list);
}

function isLabelOf(child: HtmlElement | HtmlText, note: HtmlElement): boolean {
  if (child.kind !== 'element' || child.name !== 'dt') return false;
  const elements = note.parent?.children.filter((one) => one.kind === 'element') ?? [];
  return elements[elements.indexOf(note) - 1] === child;
}

function dropSeparator(box: HtmlElement, list: HtmlElement): void {
  const elements = box.children.filter((child) => child.kind === 'element');
  const before = elements[elements.indexOf(list) - 1];
  if (before !== undefined && announcesNotes(before)) box.children = box.children.filter((child) => child !== before);
}

function announcesNotes({ name, attributes }: HtmlElement): boolean {
  if (name === 'hr') return true;
  return (
    /^h[1-6]$/.test(name) && /(?:^|\s)(?:sr-only|visually-hidden|footnote-label)(?:\s|$)/.test(namesOf(attributes))
  );
}

function namesOf(attributes: HtmlElement['attributes']): string {
  return `${attributes.class ?? ''} ${attributes.id ?? ''}`;
}

function dropBacklinks(note: HtmlElement): void {
  const visit = (element: HtmlElement): void => {
    element.children = element.children.filter((child) => {
      if (child.kind === 'text') return true;
      if (isBacklink(child) || /(?:^|\s)label(?:\s|$)/.test(child.attributes.class ?? '')) return false;
      visit(child);
      return true;
    });
  };
  visit(note);
}

function isBacklink({ name, attributes, children }: HtmlElement): boolean {
  if (name !== 'a' && name !== 'sup') return false;
  if (name === 'sup')
    return children.length > 0 && children.every((child) => child.kind === 'element' && isBacklink(child));
  if (attributes.role === 'doc-backlink' || attributes['data-footnote-backref'] !== undefined) return true;
  if (/(?:^|[\s-])(?:fn-?backref|footnote-?backref|backref|reversefootnote)(?:\s|$)/.test(attributes.class ?? ''))
    return true;
  const signs = children
    .map(textOf)
    .join('')
    .replaceAll(/\ufe0e|\ufe0f/g, '');
  return attributes.href?.startsWith('#') === true && /^[\s\d^)↩↑⤴]*$/.test(signs);
}
