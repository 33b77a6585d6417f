import { child, childElements, descend, descendants, type XmlElement } from '../format/xml.ts';
import type { ZipArchive } from '../format/zip.ts';
import { readPart, relationshipsOf } from './ooxml.ts';

export type Placeholder = { type: string; index: string | undefined };
type Bullet = { kind: 'none' } | { kind: 'character' } | { kind: 'number'; scheme: string; start: number };

/** The layout placeholder that a shape fills, if any. */
export function placeholderOf(shape: XmlElement): Placeholder | undefined {
  const found =
    descend(shape, 'nvSpPr', 'nvPr', 'ph') ??
    descend(shape, 'nvPicPr', 'nvPr', 'ph') ??
    descend(shape, 'nvGraphicFramePr', 'nvPr', 'ph');
  return found ? { type: found.attributes.type ?? 'obj', index: found.attributes.idx } : undefined;
}

/** The bullet in paragraph properties, or undefined when they do not mention it. */
export function bulletOf(properties: XmlElement | undefined): Bullet | undefined {
  if (!properties) return undefined;
  if (child(properties, 'buNone')) return { kind: 'none' };
  if (child(properties, 'buChar') || child(properties, 'buBlip')) return { kind: 'character' };
  const number = child(properties, 'buAutoNum');
  if (!number) return undefined;
  return {
    kind: 'number',
    scheme: number.attributes.type ?? 'arabicPeriod',
    start: Number(number.attributes.startAt ?? 1) || 1,
  };
}

/** Bullets that a slide's text inherits: from its shape, its layout, its master. */
export class SlideStyles {
  readonly #layout: XmlElement | undefined;
  readonly #master: XmlElement | undefined;

  constructor(zip: ZipArchive, layoutPart: string | undefined) {
    if (layoutPart === undefined) return;
    this.#layout = readPart(zip, layoutPart);
    const master = [...relationshipsOf(zip, layoutPart).values()].find((one) => one.type === 'slideMaster')?.target;
    this.#master = readPart(zip, master);
  }

  bullet(body: XmlElement, placeholder: Placeholder | undefined, depth: number): Bullet | undefined {
    const level = `lvl${depth + 1}pPr`;
    const own = bulletOf(descend(body, 'lstStyle', level));
    if (own || !placeholder || placeholder.type === 'notes') return own;
    for (const source of [this.#layout, this.#master]) {
      const inherited = bulletOf(descend(matching(source, placeholder), 'txBody', 'lstStyle', level));
      if (inherited) return inherited;
    }
    const styles = descend(child(this.#master, 'sldMaster'), 'txStyles');
    const isBody = /^(?:body|obj|tbl|chart|dgm|media|clipArt|pic|vertBody)$/.test(placeholder.type);
    return bulletOf(descend(styles, isBody ? 'bodyStyle' : 'otherStyle', level));
  }
}

/** The same placeholder in a layout or master: by index, else by type. */
function matching(source: XmlElement | undefined, placeholder: Placeholder): XmlElement | undefined {
  const shapes = childElements(descendants(source, 'spTree')[0], 'sp');
  const places = shapes.map((shape) => ({ shape, place: placeholderOf(shape) }));
  const byIndex = places.find(
    ({ place }) => place && placeholder.index !== undefined && place.index === placeholder.index,
  );
  const type = placeholder.type === 'obj' ? 'body' : placeholder.type === 'subTitle' ? 'body' : placeholder.type;
  return (
    byIndex ??
    places.find(({ place }) => place?.type === placeholder.type) ??
    places.find(({ place }) => place?.type === type)
  )?.shape;
}
