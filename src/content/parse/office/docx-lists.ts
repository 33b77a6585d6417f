import { child, childElements, descend, type XmlElement } from '../format/xml.ts';
import { formatNumber } from './list-numbers.ts';

type Level = { format: string; text: string; start: number; style: string | undefined };
type Numbering = { levels: Map<number, Level>; counters: Map<number, number>; overrides: Map<number, number> };

const levelsMax = 9;

/** The lists of a Word document: numbers each item as Word does. */
export class DocxLists {
  readonly #instances = new Map<string, Numbering>();

  constructor(numbering: XmlElement | undefined) {
    const root = child(numbering, 'numbering');
    const abstracts = new Map<string, Map<number, Level>>();
    const counters = new Map<string, Map<number, number>>();
    for (const one of childElements(root, 'abstractNum')) {
      const id = one.attributes.abstractNumId ?? '';
      abstracts.set(id, readLevels(one));
      counters.set(id, new Map());
    }
    for (const one of childElements(root, 'num')) {
      const abstractId = child(one, 'abstractNumId')?.attributes.val ?? '';
      const levels = new Map(abstracts.get(abstractId) ?? []);
      const overrides = new Map<number, number>();
      for (const override of childElements(one, 'lvlOverride')) {
        const level = Number(override.attributes.ilvl ?? 0);
        const start = child(override, 'startOverride')?.attributes.val;
        if (start !== undefined) overrides.set(level, Number(start));
        for (const [, own] of readLevels(override)) levels.set(level, own);
      }
      this.#instances.set(one.attributes.numId ?? '', {
        levels,
        counters: counters.get(abstractId) ?? new Map(),
        overrides,
      });
    }
  }

  /** The level that a paragraph style has in its list, as heading styles do. */
  levelOfStyle(numberId: string, styleId: string): number | undefined {
    for (const [level, one] of this.#instances.get(numberId)?.levels ?? []) if (one.style === styleId) return level;
    return undefined;
  }

  /** Counts one item and returns its label: `1.`, `1.2`, `a)`, `-` for a bullet, empty for none; undefined: no such list. */
  next(numberId: string, level: number): string | undefined {
    const numbering = this.#instances.get(numberId);
    const own = numbering?.levels.get(level);
    if (!numbering || !own || level >= levelsMax) return undefined;
    if (own.format === 'bullet') return own.text.trim() === '' ? '' : '-';
    const { counters, overrides } = numbering;
    const override = overrides.get(level);
    if (override !== undefined) {
      counters.set(level, override);
      overrides.delete(level);
    } else counters.set(level, (counters.get(level) ?? own.start - 1) + 1);
    for (const deeper of counters.keys()) if (deeper > level) counters.delete(deeper);
    return own.text.replaceAll(/%([1-9])/g, (_all, digit) => {
      const at = Number(digit) - 1;
      const shown = numbering.levels.get(at);
      return shown ? formatNumber(counters.get(at) ?? shown.start, shown.format) : '';
    });
  }
}

function readLevels(parent: XmlElement): Map<number, Level> {
  const levels = new Map<number, Level>();
  for (const one of childElements(parent, 'lvl')) {
    const choice = descend(one, 'AlternateContent', 'Choice', 'numFmt') ?? child(one, 'numFmt');
    const start = Number(child(one, 'start')?.attributes.val ?? 1);
    levels.set(Number(one.attributes.ilvl ?? 0), {
      format: choice?.attributes.val ?? 'decimal',
      text: child(one, 'lvlText')?.attributes.val ?? '',
      start: Number.isFinite(start) ? start : 1,
      style: child(one, 'pStyle')?.attributes.val,
    });
  }
  return levels;
}
