/** The text of a number as its cell shows it. Dates are ISO, everything else is in English notation. */
export type NumberFormat = (value: number, from1904: boolean) => string;

/**
 * The number format of a cell style, from its number and its code (`#,##0.00 "kg";[Red](#,##0.00)`). What a format would
 * hide, and what has an exponent, is written as stored.
 */
export function numberFormat(id: number, code: string | undefined): NumberFormat {
  if (id === 46) return elapsed;
  if ((id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58))
    return serialDate;
  const known = code ?? builtIn[id];
  if (known === undefined || /^(?:general|standard|@)?$/i.test(known)) return numberText;
  const sections = sectionsOf(known.slice(0, codeLengthMax))
    .filter((tokens, index) => index === 0 || (index < 3 && !tokens.some(({ kind }) => kind === '@')))
    .map((tokens) => ({
      tokens,
      condition: conditionOf(tokens),
      dateKind: kindOfDate(tokens),
      layout: layoutOf(tokens),
    }));
  return (value, from1904) => shownNumber(value, sections, from1904) || numberText(value);
}

/** Excel allows 255 characters. */
const codeLengthMax = 300;

/** Formats that files name without their code. Their currency depends on the reader's settings. */
const builtIn: Record<number, string> = {
  1: '0',
  2: '0.00',
  3: '#,##0',
  4: '#,##0.00',
  5: '#,##0;(#,##0)',
  6: '#,##0;(#,##0)',
  7: '#,##0.00;(#,##0.00)',
  8: '#,##0.00;(#,##0.00)',
  9: '0%',
  10: '0.00%',
  12: '# ?/?',
  13: '# ??/??',
  37: '#,##0;(#,##0)',
  38: '#,##0;(#,##0)',
  39: '#,##0.00;(#,##0.00)',
  40: '#,##0.00;(#,##0.00)',
  41: '#,##0;(#,##0);-',
  42: '#,##0;(#,##0);-',
  43: '#,##0.00;(#,##0.00);-',
  44: '#,##0.00;(#,##0.00);-',
};

/** `0` stands for all placeholders of digits, whose character is the text. */
type Token = {
  kind: 'text' | '0' | '.' | ',' | '%' | '/' | 'E' | '@' | 'general' | 'date' | 'elapsed' | '?';
  text: string;
};

function sectionsOf(code: string): Token[][] {
  const sections: Token[][] = [[]];
  const pieces = /"([^"]*)"?|\\(.)|\[([^\]]*)\]|([_*]).|(general)|(e[+-])|(am\/pm|a\/p)|(.)/gisu;
  for (const [, quoted, escaped, bracket, space, general, exponent, noon, other = ''] of code.matchAll(pieces)) {
    const add = (kind: Token['kind'], text: string): number | undefined => sections.at(-1)?.push({ kind, text });
    if (other === ';') sections.push([]);
    else if (bracket !== undefined) {
      if (/^(?:h+|m+|s+)$/i.test(bracket)) add('elapsed', bracket);
      else if (/^[<>=]/.test(bracket)) add('?', bracket);
      else if (bracket.startsWith('$')) add('text', bracket.slice(1).replace(/-[\dA-F]*$/i, ''));
    } else if (quoted !== undefined || escaped !== undefined) add('text', quoted ?? escaped ?? '');
    else if (space !== undefined) add('text', space === '_' ? ' ' : '');
    else if (general !== undefined) add('general', general);
    else if (exponent !== undefined) add('E', exponent);
    else if (noon !== undefined || /[dyhsm]/i.test(other)) add('date', other);
    else if (/[0#?]/.test(other)) add('0', other);
    else if (/[.,%/@]/.test(other)) add(other as Token['kind'], other);
    else add('text', other);
  }
  return sections;
}

/** Digits may follow the seconds of a date only. */
function kindOfDate(tokens: Token[]): 'date' | 'elapsed' | undefined {
  const end = tokens.findLastIndex(({ kind, text }) => kind === 'elapsed' || (kind === 'date' && /s/i.test(text)));
  const isDigit = ({ kind }: Token, index: number): boolean =>
    kind === '0' && !(end >= 0 && tokens.slice(end + 1, index).every((one) => one.kind === '.' || one.kind === '0'));
  if (tokens.some(isDigit)) return undefined;
  if (tokens.some(({ kind }) => kind === 'elapsed')) return 'elapsed';
  return tokens.some(({ kind }) => kind === 'date') ? 'date' : undefined;
}

type Section = {
  tokens: Token[];
  condition: ((value: number) => boolean) | undefined;
  dateKind: 'date' | 'elapsed' | undefined;
  layout: Layout;
};

/** The text in the section that applies: the one whose condition holds, otherwise by sign. */
function shownNumber(value: number, sections: Section[], from1904: boolean): string {
  const [first, second, third] = sections;
  let section = first;
  let isBare = false;
  if (sections.some(({ condition }) => condition !== undefined)) {
    section = sections.find(({ condition }) => condition?.(value) ?? true);
    isBare = section?.tokens.some(({ kind, text }) => kind === 'text' && /[-(]/.test(text)) ?? false;
  } else if (second && value < 0) {
    section = second;
    isBare = true;
  } else if (third && value === 0) section = third;
  if (!section) return '';
  if (section.dateKind !== undefined) return section.dateKind === 'date' ? serialDate(value, from1904) : elapsed(value);
  const shown = sectionText(Math.abs(value), section).replaceAll(/\s+/g, ' ').trim();
  return value < 0 && !isBare && /[1-9]/.test(shown) ? `-${shown}` : shown;
}

function conditionOf(tokens: Token[]): ((value: number) => boolean) | undefined {
  const [, sign, limit] =
    /^(<=|>=|<>|<|>|=)\s*(-?[\d.]+)$/.exec(tokens.find(({ kind }) => kind === '?')?.text ?? '') ?? [];
  const bound = Number(limit);
  if (sign === undefined || Number.isNaN(bound)) return undefined;
  return (value) => {
    if (value === bound) return sign.includes('=');
    return sign === '<>' || (value < bound ? sign.startsWith('<') : sign.startsWith('>'));
  };
}

/** The text of a number that is not negative. Empty if the section shows nothing. */
function sectionText(value: number, { tokens, layout }: Section): string {
  if (value >= 1e15 || tokens.some(({ kind }) => kind === 'E' || kind === '@')) return numberText(value);
  const slash = tokens.findIndex(({ kind }, index) => kind === '/' && tokens[index - 1]?.kind === '0');
  if (slash >= 0) return fractionText(value, tokens, slash);
  const isBlank = value === 0 && tokens.every(({ kind, text }) => kind !== '0' || text === '?');
  const [whole = '', decimals = ''] = isBlank ? [] : roundedText(value, layout).split('.');
  let text = '';
  let place = 0;
  tokens.forEach((token, index) => {
    if (token.kind === 'text' || token.kind === '%' || token.kind === '/') text += token.text;
    else if (token.kind === 'general') text += numberText(value);
    else if (token.kind === '.' && index === layout.point) {
      if (layout.places === 0) text += whole;
      if (decimals !== '') text += `.${decimals}`;
    } else if (token.kind === '0' && index < layout.point) {
      const fromEnd = layout.places - place;
      if (!layout.isSplit) text += place === 0 ? whole : '';
      else
        text += whole.slice(
          place === 0 ? 0 : Math.max(0, whole.length - fromEnd),
          Math.max(0, whole.length - fromEnd + 1),
        );
      place += 1;
    }
  });
  return text;
}

/** `places`: placeholders before the point. `isSplit`: text stands between them, as in a telephone number. */
type Layout = {
  point: number;
  places: number;
  isSplit: boolean;
  digitsMin: number;
  decimalsMin: number;
  decimalsMax: number;
  shift: number;
  isGrouped: boolean;
};

function layoutOf(tokens: Token[]): Layout {
  const isDigit = ({ kind }: Token): boolean => kind === '0';
  const stated = tokens.findIndex(({ kind }) => kind === '.');
  const point = stated < 0 ? tokens.length : stated;
  const whole = tokens.slice(0, point);
  const start = whole.findIndex(isDigit);
  const end = whole.findLastIndex(isDigit);
  const digits = whole.filter(isDigit);
  const decimals = tokens.slice(point).filter(isDigit);
  const inner = start < 0 ? [] : whole.slice(start, end);
  const after = whole.slice(end + 1).findIndex(({ kind }) => kind !== ',');
  const scale = start < 0 ? 0 : after < 0 ? whole.length - end - 1 : after;
  const tail = tokens.slice(tokens.findLastIndex(isDigit) + 1).filter(({ kind }) => kind === ',').length;
  const firstZero = digits.findIndex(({ text }) => text === '0');
  return {
    point,
    places: digits.length,
    isSplit: inner.some(({ kind }) => kind !== '0' && kind !== ','),
    digitsMin: firstZero < 0 ? 1 : digits.length - firstZero,
    decimalsMin: decimals.findLastIndex(({ text }) => text === '0') + 1,
    decimalsMax: Math.min(15, decimals.length),
    shift: 2 * tokens.filter(({ kind }) => kind === '%').length - 3 * (decimals.length > 0 ? tail : scale),
    isGrouped: inner.some(({ kind }) => kind === ','),
  };
}

function roundedText(value: number, { shift, decimalsMin, decimalsMax, digitsMin, isGrouped }: Layout): string {
  const scaled = shifted(Number(value.toPrecision(15)), shift);
  const rounded = shifted(Math.round(shifted(scaled, decimalsMax)), -decimalsMax);
  const digits = rounded < 1 ? 0 : Math.floor(Math.log10(rounded)) + 1;
  // A double has 15 exact digits. Excel shows zeros after them.
  const [whole = '', exact = ''] = rounded.toFixed(Math.max(0, Math.min(decimalsMax, 15 - digits))).split('.');
  const decimals = exact.padEnd(decimalsMax, '0');
  let end = decimals.length;
  while (end > decimalsMin && decimals[end - 1] === '0') end -= 1;
  const padded = whole.padStart(digitsMin, '0');
  const grouped = isGrouped ? padded.replaceAll(/\B(?=(?:\d{3})+$)/g, ',') : padded;
  return end > 0 ? `${grouped}.${decimals.slice(0, end)}` : grouped;
}

/** Moves the decimal point in the decimal digits: 1.005 * 100 is 100.49999999999999. */
function shifted(value: number, places: number): number {
  const [digits = '', exponent = '0'] = String(value).split('e');
  return Number(`${digits}e${Number(exponent) + places}`);
}

/** `# ?/?`: the nearest fraction whose denominator has as many digits as stated; `# ?/8`: eighths. */
function fractionText(value: number, tokens: Token[], slash: number): string {
  let start = slash;
  while (tokens[start - 1]?.kind === '0') start -= 1;
  let end = slash + 1;
  while (/^[\d#?]$/.test(tokens[end]?.text ?? '')) end += 1;
  const stated = tokens.slice(slash + 1, end).map(({ text }) => text);
  const first = tokens.slice(0, start).findIndex(({ kind }) => kind === '0');
  const whole = first < 0 ? 0 : Math.floor(value);
  const [above, below] = stated.some((one) => /[1-9]/.test(one))
    ? [Math.round((value - whole) * Number(stated.join(''))), Number(stated.join(''))]
    : nearestFraction(value - whole, 10 ** Math.min(4, stated.length) - 1);
  const texts = (from: number, to: number): string =>
    tokens
      .slice(from, to)
      .map(({ kind, text }) => (kind === 'text' ? text : ''))
      .join('');
  const carried = first >= 0 && above === below ? whole + 1 : whole;
  const rest = above === 0 || carried > whole ? '' : `${above}/${below}`;
  const number = first < 0 ? rest || '0' : carried === 0 && rest !== '' ? rest : `${carried} ${rest}`;
  return `${texts(0, first < 0 ? start : first)}${number}${texts(end, tokens.length)}`;
}

/** By continued fractions, at most twenty terms. */
function nearestFraction(value: number, denominatorMax: number): [number, number] {
  let [above, below, aboveBefore, belowBefore] = [Math.floor(value), 1, 1, 0];
  let rest = value - above;
  for (let term = 0; term < 20 && rest > 1e-9; term++) {
    const inverse = 1 / rest;
    const steps = Math.floor(inverse);
    const allowed = Math.min(steps, Math.floor((denominatorMax - belowBefore) / below));
    const next: [number, number] = [allowed * above + aboveBefore, allowed * below + belowBefore];
    const isNearer = Math.abs(value - next[0] / next[1]) < Math.abs(value - above / below);
    if (allowed < steps) return isNearer ? next : [above, below];
    [above, below, aboveBefore, belowBefore] = [...next, above, below];
    rest = inverse - steps;
  }
  return [above, below];
}

const dayMs = 86_400_000;

/** An Excel serial day as ISO date and time (`2024-01-31 00:00:00`), a time only as `13:30:00`. */
function serialDate(serial: number, from1904: boolean): string {
  const days = from1904 ? serial + 1462 : serial;
  const time = Math.round((days - 25_569) * 86_400) * 1000;
  if (!Number.isFinite(time) || days < 0 || days > 2_958_466) return String(serial);
  const corrected = days < 60 && !from1904 ? time + dayMs : time;
  const text = new Date(corrected).toISOString();
  return serial < 1 ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** Days as hours, minutes and seconds that have passed: 1.5 is `36:00:00`. */
function elapsed(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400);
  if (!Number.isSafeInteger(seconds)) return numberText(days);
  const two = (value: number): string => String(Math.floor(value) % 60).padStart(2, '0');
  return `${days < 0 ? '-' : ''}${Math.floor(seconds / 3600)}:${two(seconds / 60)}:${two(seconds)}`;
}

/** A number as typed: no exponent in the usual range, no digits beyond the precision of a double. */
export function numberText(value: number): string {
  return String(Number(value.toPrecision(15)));
}
