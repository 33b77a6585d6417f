import { linkedThings, plainValue } from './linked-data.ts';
import type { EmbeddedData } from './script-state.ts';
import { collect, findAll, findFirst, type HtmlElement, type HtmlTree, textOf, wideWords, widthOf } from './tree.ts';

export type PageMetadata = {
  title: string | undefined;
  description: string | undefined;
  /** BCP 47, as the page states it. */
  language: string | undefined;
  /** ISO 8601, a date or a time, as precise as the page states it. */
  published: string | undefined;
  canonical: string | undefined;
  noindex: boolean;
  nofollow: boolean;
  /** Whether the page says that it is the search page of its site. */
  isSearch: boolean;
};

/** Reads a page's metadata from its head, JSON-LD and markup. `base` makes the canonical link absolute. */
export function readMetadata({ root, embedded }: HtmlTree, base: string): PageMetadata {
  const meta = metaTags(root);
  const linked = linkedData(embedded);
  const html = findFirst(root, 'html');
  const directives = [meta.get('robots'), meta.get('quarry')].flatMap((value) =>
    (value ?? '').toLowerCase().split(/[\s,]+/),
  );
  return {
    title: pageTitle(root, meta, linked, base),
    description: collapseSpace(
      meta.get('og:description') ?? meta.get('description') ?? meta.get('twitter:description') ?? linked.description,
    ),
    language: language(
      html?.attributes.lang ?? html?.attributes['xml:lang'] ?? meta.get('content-language') ?? meta.get('og:locale'),
    ),
    published: findPublished(root, meta, linked),
    canonical: canonicalLink(root, base),
    noindex: directives.includes('noindex') || directives.includes('none'),
    nofollow: directives.includes('nofollow') || directives.includes('none'),
    isSearch: isSearchPage(root, base),
  };
}

export function metaTags(root: HtmlElement): Map<string, string> {
  const tags = new Map<string, string>();
  for (const { attributes } of findAll(root, 'meta')) {
    const name = (attributes.property ?? attributes.name ?? attributes['http-equiv'] ?? attributes.itemprop)
      ?.trim()
      .toLowerCase();
    const content = attributes.content?.trim();
    if (name && content && !tags.has(name)) tags.set(name, content);
  }
  return tags;
}

function pageTitle(root: HtmlElement, meta: Map<string, string>, linked: LinkedData, base: string): string | undefined {
  const headings = findAll(root, 'h1')
    .filter((heading) => !leadsHome(heading, base))
    .map(textOf)
    .filter((text) => widthOf(text) > 2);
  const whole = collapseSpace(findAll(root, 'title').map(textOf)[0]);
  const named = collapseSpace(
    meta.get('og:title') ?? meta.get('twitter:title') ?? meta.get('citation_title') ?? linked.headline,
  );
  const only = headings.length === 1 ? headings[0] : undefined;
  const first = isNameOfSite(named, whole, headings) ? whole : (named ?? whole);
  if (first === undefined) return collapseSpace(headings[0]);
  // In "Article – Site" and "Site | Article", a heading that is part of the title is the title itself. The name of the
  // site may be a heading as well, above it.
  const start = first.split(separator)[0];
  const within = headings.findLast(
    (heading) =>
      heading.length < first.length && (heading === start || (heading.length >= 8 && first.includes(heading))),
  );
  return collapseSpace(within ?? withoutSiteName(first, meta.get('og:site_name')) ?? only);
}

const nameOfSiteWordsMax = 3;

/** Whether what a page calls its title is the name that its `title` has behind the heading. VitePress writes it so. */
function isNameOfSite(named: string | undefined, whole: string | undefined, headings: string[]): boolean {
  if (named === undefined || whole === undefined || countWords(named) > nameOfSiteWordsMax) return false;
  const start = whole.split(separator)[0] ?? '';
  return headings.includes(start) && !start.includes(named) && whole.slice(start.length).includes(named);
}

/** Whether a heading is the name of the site, which leads to its start page. */
function leadsHome(heading: HtmlElement, base: string): boolean {
  const href = findFirst(heading, 'a')?.attributes.href;
  const target = href === undefined ? null : URL.parse(href, base);
  return (
    target !== null &&
    /^\/(?:index\.\w+|start)?$/.test(target.pathname) &&
    target.pathname !== URL.parse(base)?.pathname
  );
}

const separator = /\s+[|–—\-:·»«•]\s+/;

function withoutSiteName(title: string, site: string | undefined): string {
  const parts = title.split(separator);
  if (parts.length < 2) return title;
  const last = parts.at(-1) ?? '';
  const rest = title.slice(0, title.lastIndexOf(last)).replace(/\s+[|–—\-:·»«•]\s+$/, '');
  const isSite = site !== undefined && last.toLowerCase() === site.toLowerCase();
  return isSite || (countWords(last) <= 3 && countWords(rest) >= 4) ? rest : title;
}

function countWords(text: string): number {
  return text.split(' ').length + wideWords(text);
}

function language(raw: string | undefined): string | undefined {
  const first = raw
    ?.split(/[,;\s]/)[0]
    ?.trim()
    .replaceAll('_', '-');
  return first !== undefined && /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/.test(first) ? first : undefined;
}

function findPublished(root: HtmlElement, meta: Map<string, string>, linked: LinkedData): string | undefined {
  const names = [
    ...['article:published_time', 'og:published_time', 'datepublished', 'citation_publication_date', 'dc.date.issued'],
    ...[
      'dcterms.created',
      'dc.date',
      'date',
      'pubdate',
      'publishdate',
      'publish-date',
      'parsely-pub-date',
      'sailthru.date',
    ],
  ];
  const marked = collect(
    root,
    ({ name, attributes }) =>
      attributes.itemprop === 'datePublished' || (name === 'time' && attributes.pubdate !== undefined),
  );
  const times = findAll(root, 'time');
  const candidates = [
    linked.datePublished,
    ...names.map((name) => meta.get(name)),
    ...marked.map(({ attributes }) => attributes.datetime ?? attributes.content),
    // More than a few <time> elements belong to a list of other items.
    ...(times.length <= 3 ? times.map(({ attributes }) => attributes.datetime) : []),
  ];
  for (const candidate of candidates) {
    const date = isoDate(candidate);
    if (date !== undefined) return date;
  }
  return undefined;
}

function isoDate(raw: string | undefined): string | undefined {
  const text = raw?.trim() ?? '';
  const plain = /^(\d{4})-(\d{2})-(\d{2})(?=$|[T ])/.exec(text) ?? /^(\d{4})\/(\d{2})\/(\d{2})$/.exec(text);
  if (plain !== null && text.length <= 10)
    return Number.isNaN(Date.parse(`${plain[1]}-${plain[2]}-${plain[3]}`))
      ? undefined
      : `${plain[1]}-${plain[2]}-${plain[3]}`;
  if (text.length < 8 || text.length > 60) return undefined;
  const time = Date.parse(text);
  if (Number.isNaN(time)) return plain === null ? undefined : `${plain[1]}-${plain[2]}-${plain[3]}`;
  const year = new Date(time).getUTCFullYear();
  return year < 1990 || year > 2100 ? undefined : new Date(time).toISOString();
}

function canonicalLink(root: HtmlElement, base: string): string | undefined {
  const found = findAll(root, 'link').find(({ attributes }) => /(^|\s)canonical(\s|$)/i.test(attributes.rel ?? ''));
  const href = found?.attributes.href?.trim();
  return href !== undefined && href !== '' && URL.canParse(href, base) ? new URL(href, base).href : undefined;
}

/** An OpenSearch description is also linked as `search`, and has a type. */
function isSearchPage(root: HtmlElement, base: string): boolean {
  const own = base.split('#', 1)[0];
  return findAll(root, 'link').some(
    ({ attributes: { rel, type, href } }) =>
      type === undefined &&
      /(^|\s)search(\s|$)/i.test(rel ?? '') &&
      URL.parse(href ?? '', base)?.href.split('#', 1)[0] === own,
  );
}

const articleTypes =
  /^(?:\w*Article|BlogPosting|Report|Review|WebPage|ReportageNewsArticle|LiveBlogPosting|Recipe|Question)$/;

type LinkedData = { headline?: string; description?: string; datePublished?: string };

/** The article's metadata in JSON-LD. */
function linkedData(embedded: EmbeddedData[]): LinkedData {
  const found: LinkedData = {};
  for (const { types, properties } of linkedThings(embedded)) {
    if (!types.some((type) => articleTypes.test(type))) continue;
    for (const key of ['headline', 'description', 'datePublished'] as const) {
      const text = properties[key];
      if (typeof text === 'string' && text.trim() !== '') found[key] ??= plainValue(text);
    }
  }
  return found;
}

function collapseSpace(text: string | undefined): string | undefined {
  const clean = text?.replace(/\s+/g, ' ').trim().slice(0, 1_000).toWellFormed();
  return clean === undefined || clean === '' ? undefined : clean;
}
