import { childElements, textOf, type XmlElement } from '../format/xml.ts';
import { type NumberFormat, numberFormat, numberText } from './number-format.ts';

const columnRunsMax = 20_000;

/** The numbers, dates and times of an OpenDocument workbook, as its cell styles show them. */
export class OdfNumbers {
  readonly #codes = new Map<string, string>();
  readonly #cellStyles = new Map<string, XmlElement>();
  readonly #formats = new Map<string, NumberFormat>();

  /** `sources`: the elements that contain styles. */
  constructor(sources: (XmlElement | undefined)[]) {
    for (const source of sources)
      for (const style of childElements(source)) {
        const name = style.attributes['style:name'] ?? style.attributes.name ?? '';
        if (style.name === 'style') this.#cellStyles.set(name, style);
        else if (/^(?:number|percentage|currency)-style$/.test(style.name)) this.#codes.set(name, this.#codeOf(style));
      }
  }

  /** The text of a cell with a number, a date or a time. Undefined for others, and for dates without a value. */
  text(cell: XmlElement, defaultStyle: string | undefined): string | undefined {
    const { 'value-type': type, value } = cell.attributes;
    if (type === 'date') return cell.attributes['date-value'] && dateText(cell.attributes['date-value']);
    if (type === 'time') return timeText(cell.attributes['time-value'] ?? '');
    const isNumber = type === 'float' || type === 'percentage' || type === 'currency';
    if (!isNumber || value === undefined || !Number.isFinite(Number(value))) return undefined;
    const format = this.#formatOf(cell.attributes['style-name'] ?? defaultStyle ?? 'Default');
    if (format) return format(Number(value), false);
    return type === 'float' ? numberText(Number(value)) : undefined;
  }

  #formatOf(cellStyle: string): NumberFormat | undefined {
    let style = this.#cellStyles.get(cellStyle);
    for (let depth = 0; style && depth < 20 && style.attributes['data-style-name'] === undefined; depth++)
      style = this.#cellStyles.get(style.attributes['parent-style-name'] ?? '');
    const code = this.#codes.get(style?.attributes['data-style-name'] ?? '');
    if (code === undefined) return undefined;
    const known = this.#formats.get(code) ?? numberFormat(-1, code);
    this.#formats.set(code, known);
    return known;
  }

  /** The style as a format code of Excel. The styles that it names for some values come before it. */
  #codeOf(style: XmlElement): string {
    const mapped = childElements(style, 'map').map(({ attributes }) => {
      const condition = /^value\(\)\s*([<>=!]{1,2}-?[\d.]+)$/.exec(attributes.condition ?? '')?.[1];
      const code = this.#codes.get(attributes['apply-style-name'] ?? '');
      return condition === undefined || code === undefined ? '' : `[${condition.replace('!=', '<>')}]${code};`;
    });
    return `${mapped.join('')}${childElements(style).map(partCode).join('')}`;
  }
}

function partCode(part: XmlElement): string {
  const { attributes } = part;
  const count = (name: string): number => Math.min(15, Number(attributes[name] ?? 0) || 0);
  switch (part.name) {
    case 'number': {
      const places = attributes['decimal-places'];
      if (places === undefined) return 'General';
      const fixed =
        attributes['min-decimal-places'] === undefined ? count('decimal-places') : count('min-decimal-places');
      const decimals = '0'.repeat(fixed) + '#'.repeat(Math.max(0, count('decimal-places') - fixed));
      const digits = '0'.repeat(count('min-integer-digits')) || '#';
      const whole = attributes.grouping === 'true' ? `#,${digits.padStart(3, '#')}` : digits;
      const thousands = Math.round(Math.log10(Number(attributes['display-factor'] ?? 1)) / 3);
      return `${whole}${decimals === '' ? '' : `.${decimals}`}${','.repeat(thousands > 0 && thousands < 5 ? thousands : 0)}`;
    }
    case 'fraction': {
      const whole = attributes['min-integer-digits'] === undefined ? '' : '# ';
      const below = attributes['denominator-value'] ?? '?'.repeat(count('min-denominator-digits') || 1);
      return `${whole}?/${below.replaceAll(/[^\d?]/g, '')}`;
    }
    case 'scientific-number':
      return '0E+0';
    case 'text':
    case 'currency-symbol':
      return textOf(part) === '%' ? '%' : `"${textOf(part).replaceAll('"', '')}"`;
    default:
      return '';
  }
}

/** The style of the cells of each column that name none. */
export function columnStyles(table: XmlElement): (column: number) => string | undefined {
  const runs: { end: number; style: string | undefined }[] = [];
  const visit = (parent: XmlElement): void => {
    for (const one of childElements(parent)) {
      if (/^table-(?:columns|header-columns|column-group)$/.test(one.name)) visit(one);
      if (one.name !== 'table-column' || runs.length >= columnRunsMax) continue;
      const count = Number(one.attributes['number-columns-repeated'] ?? 1) || 1;
      runs.push({ end: (runs.at(-1)?.end ?? 0) + count, style: one.attributes['default-cell-style-name'] });
    }
  };
  visit(table);
  return (column) => {
    let [low, high] = [0, runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((runs[middle]?.end ?? 0) <= column) low = middle + 1;
      else high = middle;
    }
    return runs[low]?.style;
  };
}

function dateText(value: string): string {
  const [date = '', time = '00:00:00'] = value.split('T');
  return `${date} ${time.slice(0, 8)}`;
}

/** `PT36H30M00S` as `36:30:00`. */
function timeText(value: string): string | undefined {
  const [, hours, minutes = '0', seconds = '0'] = /^-?PT(\d+)H(?:(\d+)M)?(?:(\d+)(?:[.,]\d+)?S)?$/.exec(value) ?? [];
  if (hours === undefined) return undefined;
  const two = (digits: string): string => digits.padStart(2, '0');
  return `${value.startsWith('-') ? '-' : ''}${two(hours)}:${two(minutes)}:${two(seconds)}`;
}
