import { Parser } from 'htmlparser2';
import { type FeedEntry, type FeedFile, feedLimits } from '../../feed-file.ts';
import { decodeText } from '../text/charset.ts';
import { ParseError } from '../types.ts';

const pieceCharacters = 64 * 1024;

/**
 * Reads RSS, RDF, Atom or JSON Feed, at most `entriesMax` entries. XML is scanned tag by tag: only one entry is held
 * in addition to those that were read, and what follows the last one is not looked at. Throws ParseError.
 */
export function parseFeed(bytes: Uint8Array, baseUrl: string, isEndless: boolean): FeedFile {
  const isCut = isEndless || bytes.byteLength >= feedLimits.bytesMax;
  const claimed = /<\?xml[^>]*?encoding\s*=\s*["']([\w-]+)/.exec(
    Buffer.from(bytes.subarray(0, 200)).toString('latin1'),
  );
  const { text } = decodeText(bytes, claimed?.[1]);
  const start = text.trimStart();
  const feed = start.startsWith('{') ? readJsonFeed(start, isCut) : readXmlFeed(start);
  return {
    ...feed,
    isWhole: feed.isWhole && !isCut,
    entries: feed.entries.flatMap((entry) => complete(entry, baseUrl)),
  };
}

/** An entry without its id is named by its page. */
function complete({ url, ...entry }: FeedEntry, baseUrl: string): FeedEntry[] {
  const page = url !== undefined && URL.canParse(url, baseUrl) ? new URL(url, baseUrl).href : undefined;
  const id = entry.id || page || entry.title || '';
  const isWeb = page !== undefined && /^https?:/.test(page);
  return id === '' ? [] : [{ ...entry, id, ...(isWeb ? { url: page } : {}) }];
}

type Raw = { fields: Map<string, string>; isHtml: boolean; isDeleted: boolean };

/** Elements of an entry that are read, and what they are. The first of several that is found counts. */
const fieldNames: Record<string, string> = {
  title: 'title',
  link: 'url',
  guid: 'id',
  id: 'id',
  description: 'summary',
  summary: 'summary',
  content: 'content',
  encoded: 'content',
  pubDate: 'updated',
  updated: 'updated',
  published: 'published',
  date: 'published',
};
/** These may have another prefix than their entry. */
const foreignNames = new Set(['encoded', 'date']);
/** Markup within Atom's xhtml that is kept. */
const keptAttributes = ['href', 'src', 'alt'];

class XmlFeed {
  readonly entries: FeedEntry[] = [];
  title: string | undefined;
  isFeed = false;
  isFull = false;
  #depth = 0;
  #entry: { raw: Raw; depth: number; prefix: string } | undefined;
  #field: { name: string; depth: number; text: string; isMarkup: boolean } | undefined;

  open(tag: string, attributes: Record<string, string>): void {
    this.#depth += 1;
    const [prefix, name] = splitName(tag);
    if (this.#depth === 1) this.isFeed = /^(?:rss|RDF|feed)$/.test(name);
    if (this.#field !== undefined) {
      if (this.#field.isMarkup) this.#append(`<${name}${attributesOf(attributes)}>`);
    } else if (this.#entry !== undefined) this.#openInEntry(prefix, name, attributes);
    else if (name === 'item' || name === 'entry' || name === 'deleted-entry') {
      const fields = new Map<string, string>();
      const about = attributes['rdf:about'] ?? attributes.ref;
      if (about !== undefined) fields.set('id', about);
      const raw = { fields, isHtml: true, isDeleted: name === 'deleted-entry' };
      this.#entry = { raw, depth: this.#depth, prefix };
    } else if (name === 'title' && this.#depth <= 3 && this.title === undefined) this.#openField('feed', false);
  }

  #openInEntry(prefix: string, name: string, attributes: Record<string, string>): void {
    const entry = this.#entry;
    const field = fieldNames[name];
    if (!entry || this.#depth !== entry.depth + 1 || field === undefined) return;
    if (prefix !== entry.prefix && !foreignNames.has(name)) return;
    if (field === 'url' && attributes.href !== undefined) {
      if ((attributes.rel ?? 'alternate') === 'alternate') entry.raw.fields.set('url', attributes.href);
      return;
    }
    if (name === 'guid' && attributes.isPermaLink !== 'false') entry.raw.fields.set('guid is a link', '');
    // Atom says what its text is; RSS always means HTML.
    if (attributes.type !== undefined && (field === 'content' || field === 'summary'))
      entry.raw.isHtml = /html/.test(attributes.type);
    this.#openField(field, attributes.type === 'xhtml');
  }

  #openField(name: string, isMarkup: boolean): void {
    this.#field = { name, depth: this.#depth, text: '', isMarkup };
  }

  text(piece: string): void {
    if (this.#field) this.#append(this.#field.isMarkup ? escapeMarkup(piece) : piece);
  }

  #append(piece: string): void {
    const field = this.#field;
    if (field && field.text.length < feedLimits.entryCharactersMax) field.text += piece;
  }

  close(tag: string): void {
    const [, name] = splitName(tag);
    const field = this.#field;
    if (field !== undefined && field.depth === this.#depth) {
      this.#field = undefined;
      const text = field.text.trim();
      if (field.name === 'feed') this.title = text;
      else if (this.#entry && text !== '') {
        const { fields } = this.#entry.raw;
        if (!fields.has(field.name) || name === 'encoded') fields.set(field.name, text);
      }
    } else if (field?.isMarkup) this.#append(`</${name}>`);
    else if (this.#entry !== undefined && this.#entry.depth === this.#depth) {
      this.entries.push(entryOf(this.#entry.raw));
      this.#entry = undefined;
      this.isFull = this.entries.length >= feedLimits.entriesMax;
    }
    this.#depth -= 1;
  }
}

function readXmlFeed(text: string): FeedFile {
  const feed = new XmlFeed();
  const parser = new Parser(
    {
      onopentag: (name, attributes) => feed.open(name, attributes),
      ontext: (piece) => feed.text(piece),
      onclosetag: (name) => feed.close(name),
    },
    { xmlMode: true, decodeEntities: true },
  );
  let at = 0;
  for (; at < text.length && !feed.isFull; at += pieceCharacters) parser.write(text.slice(at, at + pieceCharacters));
  if (!feed.isFeed) throw new ParseError('unsupported_content', 'The response is not a feed.');
  const entries = feed.entries.slice(0, feedLimits.entriesMax);
  return { ...(feed.title === undefined ? {} : { title: feed.title }), entries, isWhole: !feed.isFull };
}

function entryOf({ fields, isHtml, isDeleted }: Raw): FeedEntry {
  const url = fields.get('url') ?? (fields.has('guid is a link') ? fields.get('id') : undefined);
  const updated = fields.get('updated') ?? fields.get('published');
  const title = fields.get('title');
  return {
    id: fields.get('id') ?? '',
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
    ...(updated === undefined ? {} : { updated }),
    text: fields.get('content') ?? fields.get('summary') ?? '',
    isHtml,
    isDeleted,
  };
}

function splitName(tag: string): [string, string] {
  const colon = tag.indexOf(':');
  return colon < 0 ? ['', tag] : [tag.slice(0, colon), tag.slice(colon + 1)];
}

function attributesOf(attributes: Record<string, string>): string {
  return keptAttributes
    .flatMap((name) => (attributes[name] === undefined ? [] : [` ${name}="${escapeMarkup(attributes[name])}"`]))
    .join('');
}

function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

function readJsonFeed(text: string, isCut: boolean): FeedFile {
  const feed = parseObject(isCut ? endAfterLastItem(text) : text);
  if (!Array.isArray(feed.items)) throw new ParseError('unsupported_content', 'The response is not a feed.');
  const entries = feed.items.slice(0, feedLimits.entriesMax).map((item: unknown) => jsonEntry(item));
  const title = textOf(feed.title);
  return {
    ...(title === undefined ? {} : { title }),
    entries,
    isWhole: feed.items.length <= feedLimits.entriesMax,
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (cause) {
    throw new ParseError('unsupported_content', 'The response is not a feed.', { cause });
  }
}

/** Closes a JSON feed that was cut after its last complete item. */
function endAfterLastItem(text: string): string {
  let depth = 0;
  let end = -1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      at += 1;
      while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 2 && character === '}') end = at + 1;
    }
  }
  return end < 0 ? text : `${text.slice(0, end)}]}`;
}

function jsonEntry(item: unknown): FeedEntry {
  const { id, url, title, content_html, content_text, summary, date_modified, date_published } = (item ?? {}) as Record<
    string,
    unknown
  >;
  const [page, name, updated] = [textOf(url), textOf(title), textOf(date_modified) ?? textOf(date_published)];
  const html = textOf(content_html);
  return {
    id: typeof id === 'number' ? String(id) : (textOf(id) ?? ''),
    ...(page === undefined ? {} : { url: page }),
    ...(name === undefined ? {} : { title: name }),
    ...(updated === undefined ? {} : { updated }),
    text: (html ?? textOf(content_text) ?? textOf(summary) ?? '').slice(0, feedLimits.entryCharactersMax),
    isHtml: html !== undefined,
    isDeleted: false,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
