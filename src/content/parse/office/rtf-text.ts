import iconv from 'iconv-lite';
import { escapeText, mark, script } from '../write-markdown.ts';

export type Piece = {
  text: string;
  bold: boolean;
  italic: boolean;
  strike: boolean;
  script: '' | 'sub' | 'sup';
  note?: string;
};

export function writePieces(pieces: Piece[]): string {
  return pieces
    .map((piece) => {
      if (piece.note !== undefined) return `[^${piece.note}]`;
      let text = escapeText(piece.text.replaceAll('\t', ' '));
      if (text.trim() === '') return text;
      if (piece.script !== '') text = script(text, piece.script);
      if (piece.strike) text = mark(text, '~~');
      const delimiter = `${piece.bold ? '**' : ''}${piece.italic ? '*' : ''}`;
      return delimiter === '' ? text : mark(text, delimiter);
    })
    .join('')
    .replaceAll('\u2028', '  \n');
}

export function isBullet(label: string): boolean {
  return !/[\p{L}\p{N}]/u.test(label) || label === 'o';
}

/** The encoding of a Windows code page, in the names of iconv-lite; windows-1252 for an unknown one. */
export function codepageName(number: number): string {
  if (number === 65_001) return 'utf-8';
  if (number === 10_000) return 'macintosh';
  const name = `cp${number}`;
  return iconv.encodingExists(name) ? name : 'windows-1252';
}

export const charsets: Record<number, string> = {
  0: 'windows-1252',
  77: 'macintosh',
  128: 'cp932',
  129: 'cp949',
  134: 'cp936',
  136: 'cp950',
  161: 'windows-1253',
  162: 'windows-1254',
  163: 'windows-1258',
  177: 'windows-1255',
  178: 'windows-1256',
  186: 'windows-1257',
  204: 'windows-1251',
  222: 'windows-874',
  238: 'windows-1250',
};

export const controlCharacters: Record<string, string> = {
  emdash: '—',
  endash: '–',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
  bullet: '•',
  emspace: '\u2003',
  enspace: '\u2002',
  '~': '\u00a0',
  _: '\u2011',
};

export const skippedDestinations = new Set(
  'colortbl pict header headerl headerr headerf footer footerl footerr footerf object objdata themedata colorschememapping datastore latentstyles listtable listoverridetable revtbl rsidtbl generator xmlnstbl wgrffmtfilter mmathPr fchars lchars pgptbl template bkmkstart bkmkend private1 nonshppict ftnsep ftnsepc aftnsep aftnsepc annotation atnid atnauthor sp sn sv blipuid picprop background'.split(
    ' ',
  ),
);
