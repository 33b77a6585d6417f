import { child, descendants, textOf, type XmlElement } from '../format/xml.ts';
import { type Block, escapeText, oneLine } from '../write-markdown.ts';

/** The texts of a diagram (SmartArt) as the items of a list, in the order of its data model. */
export function diagramBlocks(model: XmlElement | undefined): Block[] {
  return descendants(model, 'pt')
    .filter((point) => (point.attributes.type ?? 'node') === 'node')
    .map((point) => oneLine(descendants(child(point, 't'), 't').map(textOf).join(' ')))
    .filter((text) => text !== '')
    .map((text) => ({ type: 'item', depth: 0, marker: '-', text: escapeText(text) }));
}
