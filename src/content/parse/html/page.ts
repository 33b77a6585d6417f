import { fragmentLimits, type HeadingFragments, writeFragment } from '../../fragments.ts';
import type { PageBox } from '../../page-boxes.ts';
import { linksMax } from '../absolute-links.ts';
import type { PageReport } from '../types.ts';
import { type Block, writeMarkdown } from '../write-markdown.ts';
import { htmlBlocks } from './blocks.ts';
import { type PlacedBlock, pageBoxes } from './boxes.ts';
import { decodeHtml } from './charset.ts';
import { linkedThings } from './linked-data.ts';
import { isListOfLinks, linksOf, type PageLink, refreshOf } from './links.ts';
import { mainContent } from './main/content.ts';
import { metaTags, type PageMetadata, readMetadata } from './metadata.ts';
import { likeliestType, typeShares } from './page-type.ts';
import type { PageType } from './page-types.ts';
import { plainStructure } from './structure/structure.ts';
import { dropOwnLinks } from './structure/tools.ts';
import { readStructured, type Structured } from './structured.ts';
import { findAll, findFirst, type HtmlElement, type HtmlTree, parseHtml, treeLimits, wideWords } from './tree.ts';

type PageInput = {
  bytes: Uint8Array;
  /** The Content-Type header as received. May be empty. */
  contentType: string;
  /** The page's URL after redirects, which is the base of relative links. */
  url: string;
};

export type ParsedPage = PageMetadata & {
  /** The main text as GitHub-flavoured Markdown, without the title. */
  markdown: string;
  pageType: PageType;
  /** The facts that the page states in its metadata. */
  structured: Structured;
  /** Whether the page has no text because its scripts would render it. */
  needsBrowser: boolean;
  /** The fragments that lead to the headings of the text and to the terms that it defines. */
  fragments: HeadingFragments;
  /** The boxes of the text, for comparison with other pages of the site. None for a thread, whose posts all stay. */
  boxes: PageBox[];
  /** All links of the whole page in order, absolute, each once. Those to files with its menu come first. */
  links: PageLink[];
  /** Whether the page has hardly any text but its links. */
  isListOfLinks: boolean;
  /** Where the page sends its readers on, as a redirect does. */
  refresh: string | undefined;
  /** Describes the parts that are missing because the page is too large. Absent if the page is complete. */
  truncated?: string[];
};

/** Reads a web page as text and metadata. Has no side effects, and is safe on any bytes. */
export function parsePage({ bytes, contentType, url }: PageInput): ParsedPage {
  return readPage(parseHtml(decodeHtml(bytes, contentType)), url);
}

/** The same for a parsed page. Changes the tree: what surrounds code, headings and notes is removed. */
export function readPage(tree: HtmlTree, url: string): ParsedPage {
  const { root } = tree;
  const base = baseOf(root, url);
  const missing = new Set<string>();
  if (tree.truncated) missing.add(`everything after the first ${treeLimits.elementsMax} elements`);
  const meta = metaTags(root);
  const links = linksOf(tree, meta, base);
  if (links.length > linksMax) {
    links.length = linksMax;
    missing.add(`links after the first ${linksMax}`);
  }
  const listsLinks = isListOfLinks(root);
  for (const part of [root, ...tree.noscript]) {
    shortenOwnLinks(part, base, url);
    plainStructure(part);
  }
  // Without permalinks, the heading of a page is found in its title.
  const metadata = readMetadata(tree, base);
  const facts = { tree, url, meta, things: linkedThings(tree.embedded), title: metadata.title };
  const types = typeShares(facts);
  const pageType = likeliestType(types);
  for (const part of [root, ...tree.noscript]) dropOwnLinks(part);
  const structured = readStructured(root, facts, pageType);
  const content = mainContent(facts, types, metadata.description, structured);
  const boxes = new Map<Block, HtmlElement>();
  const blocks = htmlBlocks(content, { baseUrl: base, keepHidden: true, boxes, onCut: (what) => missing.add(what) });
  const placed: PlacedBlock[] = [];
  const written = writeMarkdown(blocks, (block, start, end) =>
    placed.push({ block, box: boxes.get(block), start, end }),
  );
  const markdown = written.trimEnd();
  return {
    ...metadata,
    markdown,
    pageType,
    structured,
    needsBrowser: tree.scripts > 0 && isFrame(markdown),
    fragments: fragmentsOf(blocks),
    boxes: pageType === 'forum' ? [] : pageBoxes(markdown, placed),
    links,
    isListOfLinks: listsLinks,
    refresh: refreshOf(tree, base, url, () => wordsIn(markdown) <= wordsOfNoticeMax),
    ...(missing.size === 0 ? {} : { truncated: [...missing] }),
  };
}

/** The part of a page's result that outputs show in addition to its text. */
export function reportPage({ pageType, structured }: ParsedPage): PageReport {
  return { page_type: pageType, structured };
}

/** Headings come first: a page may define more terms than are kept. */
function fragmentsOf(blocks: Block[]): HeadingFragments {
  const headings: [string, string][] = [];
  const terms: [string, string][] = [];
  for (const block of blocks) {
    if (!('fragment' in block) || block.fragment === undefined) continue;
    const fragment = writeFragment(block.fragment);
    if (fragment === undefined) continue;
    if (block.type === 'heading') headings.push([block.text, fragment]);
    else terms.push([block.text.split('\n', 1)[0]?.trim() ?? '', fragment]);
  }
  return [...headings, ...terms].slice(0, fragmentLimits.placesMax);
}

const wordsOfTextMin = 5;
const wordsOfNoticeMax = 60;
const scriptNotice =
  /(?:enable|requires?|turn on|activate|need) (?:your )?javascript|javascript (?:is|has been|must be|needs) /i;

/** Whether the page consists only of a container for scripts, or a notice that scripts are required. */
function isFrame(markdown: string): boolean {
  const words = wordsIn(markdown);
  return words < wordsOfTextMin || (words <= wordsOfNoticeMax && scriptNotice.test(markdown));
}

/** The number of words without addresses of links, counted as far as one more than a notice has. */
function wordsIn(markdown: string): number {
  let words = 0;
  for (const [found] of markdown.matchAll(/\]\([^)]*\)|[\p{L}\p{N}]+/gu)) {
    if (!found.startsWith(']')) words += Math.max(1, wideWords(found));
    if (words > wordsOfNoticeMax) break;
  }
  return words;
}

function baseOf(root: HtmlElement, url: string): string {
  const href = findFirst(root, 'base')?.attributes.href;
  return href !== undefined && URL.canParse(href, url) ? new URL(href, url).href : url;
}

/** Writes links to the page itself as `#fragment`: saved copies and some wikis write them with its address. */
function shortenOwnLinks(root: HtmlElement, base: string, url: string): void {
  const own = withoutFragment(url);
  for (const link of findAll(root, 'a')) {
    const href = link.attributes.href?.trim();
    if (href === undefined || !/^[^#]+#./.test(href)) continue;
    const target = URL.parse(href, base);
    if (target !== null && withoutFragment(target.href) === own)
      link.attributes = { ...link.attributes, href: href.replace(/^[^#]*/, '') };
  }
}

function withoutFragment(url: string): string {
  return url.replace(/#.*$/s, '');
}
