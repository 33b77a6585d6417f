import { collect, type HtmlElement, HtmlText, hasAncestor, textOf } from '../tree.ts';

/** Writes the label of each tab above its panel, in place of the row of labels. */
export function plainTabs(root: HtmlElement): void {
  for (const list of collect(root, ({ attributes }) => attributes.role === 'tablist')) labelPanels(list);
  const labelled = new Map<HtmlElement, HtmlElement[]>();
  for (const label of collect(root, ({ name, attributes }) => name === 'label' && attributes.for !== undefined)) {
    if (label.parent === undefined) continue;
    const labels = labelled.get(label.parent);
    if (labels === undefined) labelled.set(label.parent, [label]);
    else labels.push(label);
  }
  for (const [row, labels] of labelled) labelBlocks(row, labels);
}

const ancestorsMax = 4;
const labelCharactersMax = 60;
const tabsMax = 50;

/** Labels and panels with roles: `tablist`, `tab` and `tabpanel`. */
function labelPanels(list: HtmlElement): void {
  const tabs = collect(list, ({ attributes }) => attributes.role === 'tab');
  if (tabs.length === 0 || tabs.length > tabsMax) return;
  let box = list.parent;
  for (let level = 0; level < ancestorsMax && box !== undefined; level++, box = box.parent) {
    const panels = outermostPanels(box);
    if (panels.length === 0) continue;
    // In an accordion, each tab is above its panel already.
    if (panels.some((panel) => hasAncestor(panel, (ancestor) => ancestor === list))) return;
    const pairs = tabs.flatMap((tab, at) => {
      const panel =
        panels.find((one) => belongTogether(tab, one)) ?? (panels.length === tabs.length ? panels[at] : undefined);
      return panel === undefined ? [] : [{ tab, panel }];
    });
    if (pairs.length === 0 || new Set(pairs.map(({ panel }) => panel)).size < pairs.length) return;
    for (const { tab, panel } of pairs) putLabel(panel, textOf(tab));
    list.parent?.children.splice(list.parent.children.indexOf(list), 1);
    return;
  }
}

function outermostPanels(box: HtmlElement): HtmlElement[] {
  const found: HtmlElement[] = [];
  const visit = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (child.kind !== 'element') continue;
      if (child.attributes.role === 'tabpanel') found.push(child);
      else visit(child);
      if (found.length > tabsMax) return;
    }
  };
  visit(box);
  return found;
}

function belongTogether(tab: HtmlElement, panel: HtmlElement): boolean {
  const { id } = panel.attributes;
  const controls = tab.attributes['aria-controls'] ?? tab.attributes.href?.replace(/^#/, '');
  if (id !== undefined && id !== '' && controls === id) return true;
  const labelledBy = panel.attributes['aria-labelledby'];
  return labelledBy !== undefined && labelledBy !== '' && labelledBy === tab.attributes.id;
}

/** Tabs without scripts: a radio button and a label for each, and its panel beside the label or in a box of panels. */
function labelBlocks(row: HtmlElement, labels: HtmlElement[]): void {
  if (labels.length > tabsMax) return;
  const elements = row.children.filter((child) => child.kind === 'element');
  const own = labels.map((label) => elements[elements.indexOf(label) + 1]);
  let panels: (HtmlElement | undefined)[] = own;
  if (!own.every((panel) => panel !== undefined && panel.name !== 'input' && panel.name !== 'label')) {
    const siblings = row.parent?.children.filter((child) => child.kind === 'element') ?? [];
    const box = siblings[siblings.indexOf(row) + 1];
    panels = box?.children.filter((child) => child.kind === 'element') ?? [];
  }
  const found = panels.filter((panel) => panel !== undefined);
  if (found.length !== labels.length || !isSwitched(row, labels)) return;
  for (const [at, label] of labels.entries()) {
    const panel = found[at];
    if (panel !== undefined) putLabel(panel, textOf(label) || (label.attributes['data-title'] ?? ''));
  }
  row.children = row.children.filter(
    (child) => child.kind === 'text' || (child.name !== 'input' && !labels.includes(child)),
  );
}

/** Whether each label switches a radio button, which is beside it or beside its row. */
function isSwitched(row: HtmlElement, labels: HtmlElement[]): boolean {
  const inputs = [row, ...(row.parent === undefined ? [] : [row.parent])].flatMap((box) =>
    box.children.filter(
      (child) => child.kind === 'element' && child.name === 'input' && child.attributes.type === 'radio',
    ),
  );
  const ids = new Set(inputs.map((input) => (input.kind === 'element' ? input.attributes.id : undefined)));
  return labels.every((label) => ids.has(label.attributes.for));
}

function putLabel(panel: HtmlElement, text: string): void {
  if (text === '' || text.length > labelCharactersMax) return;
  const label: HtmlElement = { kind: 'element', name: 'p', attributes: {}, children: [], parent: panel };
  const strong: HtmlElement = {
    kind: 'element',
    name: 'strong',
    attributes: {},
    children: [new HtmlText(text)],
    parent: label,
  };
  label.children.push(strong);
  // A panel may be the box of its code.
  if (panel.name === 'pre') {
    const { parent } = panel;
    parent?.children.splice(parent.children.indexOf(panel), 0, Object.assign(label, { parent }));
  } else panel.children.unshift(label);
}
