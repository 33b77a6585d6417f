/** Letters of scripts that are written from right to left. */
export const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** The weight in a font's name; TeX writes bold as `BX`. */
export function weightOf(name: string): number {
  if (/black|heavy|extrabold|ultrabold/i.test(name)) return 800;
  if (/semi-?bold|demi/i.test(name)) return 600;
  if (/bold|(?:^|-)(?:cm|sf|ec|t1)?b[xf]\w*\d|-bd?\b|,b/i.test(name)) return 700;
  if (/medium/i.test(name)) return 500;
  if (/light|thin|hairline/i.test(name)) return 300;
  return 400;
}

/** The characters of symbol fonts that mean something; every other one is read as a bullet. */
const wingdings: Record<number, string> = {
  111: '☐',
  113: '☐',
  168: '☐',
  251: '✗',
  252: '✓',
  253: '☒',
  254: '☑',
  216: '➢',
  224: '→',
  240: '→',
  74: '☺',
};

/** The character of a glyph. Control characters, which damaged fonts produce, become blanks (and never line ends). */
export function characterOf(code: number, isSymbols: boolean): string {
  if (code >= 0x20 && code < 0x7f && !isSymbols) return String.fromCharCode(code);
  if (isSymbols && code !== 0x20 && (code < 0x2000 || (code >= 0xf000 && code <= 0xf0ff)))
    return wingdings[code & 0xff] ?? '•';
  if (code === 0xf0b7 || code === 0xf0a7) return '•';
  if ((code < 0x20 && code !== 0x0a && code !== 0x0d) || (code >= 0x7f && code < 0xa0)) return ' ';
  // Ligatures and the joined forms of Arabic become plain letters, so that searches find them.
  if ((code >= 0xfb00 && code <= 0xfdff) || (code >= 0xfe70 && code <= 0xfefc))
    return String.fromCodePoint(code).normalize('NFKC');
  return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? '\ufffd' : String.fromCodePoint(code);
}
