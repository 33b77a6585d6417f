import iconv from 'iconv-lite';
import { failed, type ParsedDocument } from '../types.ts';
import { type Block, escapeText, oneLine, writeInline, writeMarkdown } from '../write-markdown.ts';
import {
  charsets,
  codepageName,
  controlCharacters,
  isBullet,
  type Piece,
  skippedDestinations,
  writePieces,
} from './rtf-text.ts';

const groupDepthMax = 500;

/** Rich Text Format: paragraphs, headings by style, lists, tables, notes, bold and italic. Throws ParseError. */
export function parseRtf(bytes: Uint8Array): ParsedDocument {
  const { blocks, info } = readRtf(bytes);
  const { title, author } = info;
  return {
    kind: 'rtf',
    markdown: writeMarkdown(blocks),
    ...(title ? { title } : {}),
    ...(author ? { author } : {}),
  };
}

/** The blocks of a text in RTF. Throws ParseError. */
export function rtfBlocks(bytes: Uint8Array): Block[] {
  return readRtf(bytes).blocks;
}

function readRtf(bytes: Uint8Array): RtfReader {
  const reader = new RtfReader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'));
  reader.read();
  return reader;
}

type State = {
  destination: 'body' | 'skip' | 'fonts' | 'styles' | 'listtext' | 'title' | 'author' | 'instruction';
  codepage: string;
  unicodeSkip: number;
  bold: boolean;
  italic: boolean;
  strike: boolean;
  script: '' | 'sub' | 'sup';
  hidden: boolean;
  inTable: boolean;
  style: number;
  outline: number | undefined;
  listLevel: number;
  inList: boolean;
  /** The left indent, and that of the first line from there, in twips. */
  left: number;
  firstLine: number;
};

/** What `\pard` resets. */
const plainParagraph = {
  inTable: false,
  style: 0,
  outline: undefined,
  listLevel: 0,
  inList: false,
  left: 0,
  firstLine: 0,
};

/** A note that is being read, and what was read of the paragraph that refers to it. */
type Note = { depth: number; blocks: Block[]; pieces: Piece[]; listText: string };

class RtfReader {
  readonly blocks: Block[] = [];
  readonly info: { title?: string; author?: string } = {};
  readonly #text: string;
  readonly #fontCodepages = new Map<number, string>();
  readonly #styleNames = new Map<number, string>();
  #stack: State[] = [];
  #state: State = {
    destination: 'body',
    codepage: 'windows-1252',
    unicodeSkip: 1,
    bold: false,
    italic: false,
    strike: false,
    script: '',
    hidden: false,
    ...plainParagraph,
  };
  #baseCodepage = 'windows-1252';
  #font = 0;
  #bytes: number[] = [];
  /** Characters that stand for the last Unicode character in readers without Unicode, not read yet. */
  #skip = 0;
  #starred = false;
  /** Whether nothing has followed the brace that opened the group: only there does `\\*` mark a destination. */
  #atStart = false;
  #pieces: Piece[] = [];
  #listText = '';
  #styleName = '';
  /** The indents of the items around the last one, which are lists without a number in the file. */
  #itemLefts: number[] = [];
  #cellBlocks: Block[] = [];
  #row: string[] = [];
  #rows: string[][] = [];
  #note: Note | undefined;
  readonly #notes: Block[] = [];

  /** The effects of control words. Other words are ignored. */
  readonly #controlWords: Record<string, (state: State, value: number | undefined) => void> = {
    ansicpg: (state, value) => this.#setBaseCodepage(state, codepageName(value ?? 1252)),
    mac: (state) => this.#setBaseCodepage(state, 'macintosh'),
    f: (state, value) => this.#setFont(state, value ?? 0),
    fcharset: (state, value) => this.#setFontCharset(state, value ?? 0),
    uc: (state, value) => {
      state.unicodeSkip = Math.min(10, Math.max(0, value ?? 1));
    },
    u: (state, value) => {
      this.#flushBytes();
      this.#append(String.fromCharCode((value ?? 0) & 0xffff));
      this.#skip = state.unicodeSkip;
    },

    fonttbl: (state) => setDestination(state, 'fonts'),
    stylesheet: (state) => setDestination(state, 'styles'),
    info: (state) => setDestination(state, 'skip'),
    title: (state) => setDestination(state, 'title'),
    author: (state) => setDestination(state, 'author'),
    pn: (state) => setDestination(state, 'skip'),
    fldinst: (state) => setDestination(state, 'instruction'),
    listtext: (state) => this.#startListText(state),
    pntext: (state) => this.#startListText(state),

    par: () => this.#endParagraph(),
    sect: () => this.#endParagraph(),
    cell: () => this.#endCell(),
    nestcell: () => this.#endCell(),
    row: () => this.#endRow(),
    nestrow: () => this.#endRow(),
    line: () => this.#append('\u2028'),
    tab: (state) => this.#append(state.destination === 'listtext' ? ' ' : '\t'),
    footnote: (state) => this.#startNote(state),

    pard: (state) => {
      Object.assign(state, plainParagraph);
    },
    intbl: (state) => {
      state.inTable = true;
    },
    s: (state, value) => {
      state.style = value ?? 0;
    },
    outlinelevel: (state, value) => {
      state.outline = value;
    },
    li: (state, value) => {
      state.left = value ?? 0;
    },
    fi: (state, value) => {
      state.firstLine = value ?? 0;
    },
    ls: (state) => {
      state.inList = true;
    },
    ilvl: (state, value) => {
      state.listLevel = Math.min(8, Math.max(0, value ?? 0));
    },

    plain: (state) => {
      Object.assign(state, { bold: false, italic: false, strike: false, script: '', hidden: false });
    },
    b: (state, value) => {
      state.bold = value !== 0;
    },
    i: (state, value) => {
      state.italic = value !== 0;
    },
    strike: (state, value) => {
      state.strike = value !== 0;
    },
    v: (state, value) => {
      state.hidden = value !== 0;
    },
    super: (state, value) => {
      state.script = value !== 0 ? 'sup' : '';
    },
    sub: (state, value) => {
      state.script = value !== 0 ? 'sub' : '';
    },
    nosupersub: (state) => {
      state.script = '';
    },
  };

  constructor(text: string) {
    this.#text = text;
  }

  read(): void {
    const text = this.#text;
    let at = 0;
    while (at < text.length) {
      const character = text.charAt(at);
      if (character === '{') {
        this.#open();
        this.#atStart = true;
        at += 1;
        continue;
      } else if (character === '}') {
        this.#close();
        at += 1;
        if (this.#stack.length === 0 && /^\s*\{\\rtf/.test(text.slice(0, 100))) break;
      } else if (character === '\\') at = this.#control(at);
      else if (character === '\r' || character === '\n') {
        at += 1;
        continue;
      } else {
        let end = at;
        while (end < text.length && !'{}\\\r\n'.includes(text.charAt(end))) end += 1;
        for (let index = at; index < end; index++) this.#byte(text.charCodeAt(index));
        at = end;
      }
      this.#atStart = false;
    }
    this.#endParagraph();
    this.#endTable();
    this.blocks.push(...this.#notes);
  }

  #open(): void {
    this.#flushBytes();
    if (this.#stack.length >= groupDepthMax) throw failed('The document is nested too deeply to be read.');
    this.#stack.push(this.#state);
    this.#state = { ...this.#state };
    this.#starred = false;
    this.#skip = 0;
  }

  #close(): void {
    this.#flushBytes();
    this.#skip = 0;
    if (this.#state.destination === 'styles' && this.#styleName !== '') {
      this.#styleNames.set(this.#state.style, this.#styleName.replace(/;$/, '').trim().toLowerCase());
      this.#styleName = '';
    }
    if (this.#note?.depth === this.#stack.length) this.#endNote(this.#note);
    this.#state = this.#stack.pop() ?? this.#state;
  }

  #control(at: number): number {
    const text = this.#text;
    const next = text.charAt(at + 1);
    if (next === "'") {
      const code = Number.parseInt(text.slice(at + 2, at + 4), 16);
      if (Number.isFinite(code)) this.#byte(code);
      return at + 4;
    }
    if (!/[A-Za-z]/.test(next)) {
      if (next === '*') this.#starred = this.#atStart;
      else if ('\\{}'.includes(next)) this.#byte(next.charCodeAt(0));
      else if (next === '\n' || next === '\r') this.#word('par', undefined);
      else this.#append(controlCharacters[next] ?? '');
      return at + 2;
    }
    let end = at + 1;
    while (end < text.length && end < at + 40 && /[A-Za-z]/.test(text.charAt(end))) end += 1;
    const word = text.slice(at + 1, end);
    let digits = end;
    if (text.charAt(digits) === '-') digits += 1;
    while (digits < text.length && digits < end + 12 && /\d/.test(text.charAt(digits))) digits += 1;
    const value = digits > end ? Number(text.slice(end, digits)) : undefined;
    if (text.charAt(digits) === ' ') digits += 1;
    if (word === 'bin') return digits + Math.max(0, value ?? 0);
    this.#word(word, value);
    return digits;
  }

  #word(word: string, value: number | undefined): void {
    if (word !== 'u') this.#flushBytes();
    this.#skip = 0;
    const state = this.#state;
    if (this.#starred && !/^(?:fldinst|footnote|listtext|pntext|shptxt|shpinst)$/.test(word)) {
      this.#starred = false;
      state.destination = 'skip';
      return;
    }
    this.#starred = false;
    if (skippedDestinations.has(word)) {
      state.destination = 'skip';
      return;
    }
    if (Object.hasOwn(controlCharacters, word)) {
      this.#append(controlCharacters[word] ?? '');
      return;
    }
    if (Object.hasOwn(this.#controlWords, word)) this.#controlWords[word]?.(state, value);
  }

  #setBaseCodepage(state: State, name: string): void {
    this.#baseCodepage = name;
    state.codepage = name;
  }

  #setFont(state: State, font: number): void {
    this.#font = font;
    if (state.destination !== 'fonts') state.codepage = this.#fontCodepages.get(font) ?? this.#baseCodepage;
  }

  #setFontCharset(state: State, charset: number): void {
    const name = charsets[charset];
    if (state.destination === 'fonts' && name !== undefined) this.#fontCodepages.set(this.#font, name);
  }

  /** A foot- or endnote stands in the text as a group, with paragraphs of its own. */
  #startNote(state: State): void {
    if (this.#note || state.destination !== 'body') return;
    this.#note = { depth: this.#stack.length, blocks: [], pieces: this.#pieces, listText: this.#listText };
    this.#pieces = [];
    this.#listText = '';
  }

  #endNote(note: Note): void {
    this.#endParagraph();
    this.#note = undefined;
    this.#pieces = note.pieces;
    this.#listText = note.listText;
    if (note.blocks.length === 0) return;
    const label = String(this.#notes.length + 1);
    this.#notes.push({ type: 'note', label, blocks: note.blocks });
    this.#pieces.push({ text: '', bold: false, italic: false, strike: false, script: '', note: label });
  }

  #startListText(state: State): void {
    state.destination = 'listtext';
    this.#listText = '';
  }

  #byte(code: number): void {
    if (this.#skip > 0) this.#skip -= 1;
    else this.#bytes.push(code);
  }

  #flushBytes(): void {
    this.#skip = this.#bytes.length > 0 ? 0 : this.#skip;
    if (this.#bytes.length === 0) return;
    const bytes = Buffer.from(this.#bytes);
    this.#bytes = [];
    this.#append(
      iconv.decode(bytes, iconv.encodingExists(this.#state.codepage) ? this.#state.codepage : 'windows-1252'),
    );
  }

  #append(text: string): void {
    const state = this.#state;
    switch (state.destination) {
      case 'styles':
        this.#styleName += text;
        return;
      case 'listtext':
        this.#listText += text;
        return;
      case 'title':
      case 'author':
        this.info[state.destination] = `${this.info[state.destination] ?? ''}${text}`.slice(0, 1000);
        return;
      case 'body':
        break;
      default:
        return;
    }
    if (state.hidden || text === '') return;
    const last = this.#pieces.at(-1);
    const { bold, italic, strike, script } = state;
    if (
      last &&
      last.note === undefined &&
      last.bold === bold &&
      last.italic === italic &&
      last.strike === strike &&
      last.script === script
    )
      last.text += text;
    else this.#pieces.push({ text, bold, italic, strike, script });
  }

  #endParagraph(): void {
    this.#flushBytes();
    const block = this.#paragraph();
    this.#pieces = [];
    this.#listText = '';
    if (!block) return;
    if (this.#note) this.#note.blocks.push(block);
    else if (this.#state.inTable) this.#cellBlocks.push(block);
    else {
      this.#endTable();
      this.blocks.push(block);
    }
  }

  #paragraph(): Block | undefined {
    const state = this.#state;
    const level = this.#headingLevel();
    if (level === undefined && this.#listText === '' && !state.inList) this.#readHangingLabel(state);
    const text =
      level === undefined ? writePieces(this.#pieces) : escapeText(this.#pieces.map((one) => one.text).join(''));
    if (text.trim() === '') return undefined;
    const label = this.#listText.trim();
    if (level !== undefined)
      return { type: 'heading', level, text: oneLine(`${label === '' || isBullet(label) ? '' : `${label} `}${text}`) };
    if (label !== '' || state.inList) {
      if (/^\d+[.)]$/.test(label)) return { type: 'item', depth: state.listLevel, marker: label, text };
      return {
        type: 'item',
        depth: state.listLevel,
        marker: '-',
        text: label === '' || isBullet(label) ? text : `${escapeText(label)} ${text}`,
      };
    }
    return { type: 'paragraph', text };
  }

  /** A bullet or number that hangs to the left of its paragraph before a tab is the label of an item. */
  #readHangingLabel(state: State): void {
    const [first] = this.#pieces;
    const label = state.firstLine < 0 ? hangingLabel.exec(first?.text ?? '') : null;
    if (!first || !label) {
      if (state.left === 0) this.#itemLefts = [];
      return;
    }
    first.text = first.text.slice(label[0].length);
    this.#listText = label[1] ?? '';
    this.#itemLefts = this.#itemLefts.filter((left) => left < state.left);
    state.listLevel = Math.min(8, this.#itemLefts.length);
    this.#itemLefts.push(state.left);
  }

  #headingLevel(): number | undefined {
    const name = this.#styleNames.get(this.#state.style) ?? '';
    if (name === 'title') return 1;
    const named = /^(?:heading|überschrift|titre|título|titolo) ?([1-9])/.exec(name)?.[1];
    if (named !== undefined) return Number(named);
    const { outline } = this.#state;
    return outline !== undefined && outline >= 0 && outline < 9 ? outline + 1 : undefined;
  }

  #endCell(): void {
    this.#state.inTable = true;
    this.#endParagraph();
    this.#row.push(writeInline(this.#cellBlocks));
    this.#cellBlocks = [];
  }

  #endRow(): void {
    if (this.#row.length > 0) this.#rows.push(this.#row);
    this.#row = [];
  }

  #endTable(): void {
    this.#endRow();
    if (this.#rows.length > 0) this.blocks.push({ type: 'table', rows: this.#rows });
    this.#rows = [];
  }
}

const hangingLabel = /^\s*([•‣◦▪·*–-]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)])\t\s*/;

function setDestination(state: State, destination: State['destination']): void {
  state.destination = destination;
}
