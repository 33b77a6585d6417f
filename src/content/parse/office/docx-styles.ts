import { child, childElements, descend, type XmlElement } from '../format/xml.ts';
import { isOn } from './ooxml.ts';

export type RunFormat = { bold: boolean; italic: boolean; strike: boolean; hidden: boolean };
export type ParagraphStyle = {
  /** 1 to 6 for headings, undefined for others. */
  heading: number | undefined;
  title: boolean;
  code: boolean;
  quote: boolean;
  numberId: string | undefined;
  numberLevel: number | undefined;
  run: RunFormat;
};

type Style = {
  id: string;
  name: string;
  basedOn: string | undefined;
  paragraph: XmlElement | undefined;
  run: XmlElement | undefined;
};

const chainMax = 20;

/** Named styles of a Word document, resolved through their base styles. */
export class DocxStyles {
  readonly #styles = new Map<string, Style>();
  readonly #resolved = new Map<string, ParagraphStyle>();
  readonly language: string | undefined;
  readonly #default: string | undefined;

  constructor(document: XmlElement | undefined) {
    const root = child(document, 'styles');
    for (const one of childElements(root, 'style')) {
      const id = one.attributes.styleId ?? '';
      this.#styles.set(id, {
        id,
        name: child(one, 'name')?.attributes.val ?? id,
        basedOn: child(one, 'basedOn')?.attributes.val,
        paragraph: child(one, 'pPr'),
        run: child(one, 'rPr'),
      });
      if (one.attributes.type === 'paragraph' && isOn({ ...one, attributes: { val: one.attributes.default ?? '0' } }))
        this.#default = id;
    }
    this.language = descend(root, 'docDefaults', 'rPrDefault', 'rPr', 'lang')?.attributes.val;
  }

  paragraph(id: string | undefined): ParagraphStyle {
    const key = id ?? this.#default ?? '';
    const known = this.#resolved.get(key);
    if (known) return known;
    const resolved = this.#resolve(key);
    this.#resolved.set(key, resolved);
    return resolved;
  }

  /** Whether text in this character style is bold, italic, struck through or hidden. */
  character(id: string | undefined): Partial<RunFormat> {
    if (id === undefined) return {};
    const format: Partial<RunFormat> = {};
    for (const style of this.#chain(id).reverse()) Object.assign(format, runFormat(style.run));
    return format;
  }

  isCode(id: string | undefined): boolean {
    return (
      id !== undefined &&
      this.#chain(id).some((style) =>
        /^(?:verbatim|source|html)?\s*(?:code|char code)\b|verbatim char|html code/i.test(style.name),
      )
    );
  }

  #resolve(id: string): ParagraphStyle {
    const chain = this.#chain(id);
    const names = chain.map((style) => style.name.toLowerCase());
    const own = names[0] ?? id.toLowerCase();
    let heading: number | undefined;
    let numberId: string | undefined;
    let numberLevel: number | undefined;
    for (const style of chain) {
      const named =
        /^(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift)\s*([1-9])/i.exec(style.name)?.[1] ??
        /^heading([1-9])$/i.exec(style.id)?.[1];
      const outline = child(style.paragraph, 'outlineLvl')?.attributes.val;
      if (heading === undefined && outline !== undefined) heading = Number(outline) < 9 ? Number(outline) + 1 : 0;
      if (heading === undefined && named !== undefined) heading = Number(named);
      numberId ??= descend(style.paragraph, 'numPr', 'numId')?.attributes.val;
      const level = descend(style.paragraph, 'numPr', 'ilvl')?.attributes.val;
      if (numberLevel === undefined && level !== undefined) numberLevel = Number(level);
    }
    const run: RunFormat = { bold: false, italic: false, strike: false, hidden: false };
    for (const style of [...chain].reverse()) Object.assign(run, runFormat(style.run));
    return {
      heading: heading === 0 || /^toc\b/.test(own) ? undefined : heading,
      title: own === 'title' || own === 'titel' || names.includes('title'),
      code: names.some((name) =>
        /^(?:source code|html preformatted|code|preformatted text|macro text|macro|plain text code)$/.test(name),
      ),
      quote: names.some((name) => /^(?:quote|intense quote|block text|quotations)$/.test(name)),
      numberId,
      numberLevel,
      run,
    };
  }

  #chain(id: string): Style[] {
    const chain: Style[] = [];
    let current: string | undefined = id;
    while (current !== undefined && chain.length < chainMax) {
      const style = this.#styles.get(current);
      if (!style) break;
      chain.push(style);
      current = style.basedOn;
    }
    return chain;
  }
}

/** What run properties switch on or off; unmentioned ones are absent. */
export function runFormat(properties: XmlElement | undefined): Partial<RunFormat> {
  const format: Partial<RunFormat> = {};
  for (const one of properties?.children ?? []) {
    if (typeof one === 'string') continue;
    if (one.name === 'b') format.bold = isOn(one);
    else if (one.name === 'i') format.italic = isOn(one);
    else if (one.name === 'strike' || one.name === 'dstrike') format.strike = isOn(one);
    else if (one.name === 'vanish') format.hidden = isOn(one);
  }
  return format;
}
