import { microdataTypes, type Thing } from './linked-data.ts';
import { measureText, proseLengths } from './main/measure.ts';
import { countPosts } from './main/thread.ts';
import { collect, findAll, findFirst, type HtmlElement, type HtmlTree, textOf } from './tree.ts';

/** What is known about a page before its text is extracted. */
export type PageFacts = {
  tree: HtmlTree;
  url: string;
  meta: Map<string, string>;
  things: Thing[];
  title: string | undefined;
};

/** Signals of a page's type, each true or false: the page's own statements, its address, and its shape. */
export function pageSignals({ tree, url, meta, things, title }: PageFacts): Set<string> {
  const signals = new Set<string>();
  const add = (name: string, holds = true): void => {
    if (holds) signals.add(name);
  };
  addStatements(add, tree.root, meta, things);
  addAddress(add, url);
  const body = findFirst(tree.root, 'body') ?? tree.root;
  const text = textOf(body);
  addWords(add, text.slice(0, wordsCharactersMax), title ?? '');
  addShape(add, body, text);
  return signals;
}

type Add = (name: string, holds?: boolean) => void;

const schemaTypes: [string, RegExp][] = [
  ['schema:article', /^(?:\w*Article|BlogPosting|Report|LiveBlogPosting|Recipe)$/],
  ['schema:technical', /^(?:TechArticle|APIReference|SoftwareSourceCode)$/],
  ['schema:thread', /^(?:DiscussionForumPosting|QAPage)$/],
  ['schema:list', /^(?:CollectionPage|ItemList|OfferCatalog|SearchResultsPage)$/],
  ['schema:service', /^(?:Service|SoftwareApplication|WebApplication|Course|ProfessionalService|LocalBusiness)$/],
  ['schema:faq', /^FAQPage$/],
  ['schema:person', /^Person$/],
  ['schema:organization', /^Organization$/],
];

/** Adds signals from schema.org, Open Graph and the generator. */
function addStatements(add: Add, root: HtmlElement, meta: Map<string, string>, things: Thing[]): void {
  const types = things.flatMap((thing) => thing.types);
  const micro = microdataTypes(root);
  const countItems = (pattern: RegExp): number =>
    [...micro].reduce((sum, [type, count]) => sum + (pattern.test(type) ? count : 0), 0);
  for (const [name, pattern] of schemaTypes)
    add(name, types.some((type) => pattern.test(type)) || countItems(pattern) > 0);
  const product = /^(?:Product|ProductGroup|IndividualProduct)$/;
  const products = types.filter((type) => product.test(type)).length + countItems(product);
  add('schema:product', products === 1 || products === 2);
  add('schema:products', products > 2);
  add('items:replies', countItems(/^(?:Comment|Answer)$/) >= 2);
  const kind = (meta.get('og:type') ?? 'none').toLowerCase();
  add('og:article', kind === 'article' || kind === 'blog');
  add('og:website', kind === 'website');
  add('og:none', kind === 'none');
  add('og:product', /^(?:og:)?product(?:\.item)?$/.test(kind));
  add('og:products', kind === 'product.group');
  add('meta:published', meta.has('article:published_time') || meta.has('datepublished') || meta.has('citation_title'));
  add('meta:author', meta.has('author') || meta.has('article:author'));
  const generator = (meta.get('generator') ?? '').toLowerCase();
  add(
    'generator:forum',
    /discourse|xenforo|vbulletin|phpbb|invision|flarum|nodebb|vanilla|mybb|simple machines/.test(generator),
  );
  add('generator:thread', isThreadByName(root));
  add('generator:docs', blogsAndManuals.test(generator));
  add('generator:manual', manuals.test(generator) || isOfSphinx(root));
  add('generator:blog', /wordpress|ghost|blogger|medium|substack|hugo|jekyll/.test(generator));
}

/** Generators of manuals whose sites may also have a blog and a start page that offers something. */
const blogsAndManuals = /docusaurus|mkdocs|vitepress|starlight|docsy|mintlify|nextra/;
/** Generators of manuals, references and specifications alone. */
const manuals =
  /sphinx|docutils|gitbook|honkit|docfx|mdbook|antora|javadoc|doxygen|rustdoc|pdoc|makeinfo|texi2any|docbook|respec|bikeshed|xml2rfc/;

/** Whether a page has the style sheet that Sphinx gives to all of its pages. Few name their generator. */
function isOfSphinx(root: HtmlElement): boolean {
  return findAll(root, 'link').some(({ attributes }) =>
    /(?:^|\/)_static\/pygments\.css(?:\?|$)/.test(attributes.href ?? ''),
  );
}

/** Whether the root or the body of a page has the name that phpBB and XenForo 2 give it for a thread. */
function isThreadByName(root: HtmlElement): boolean {
  const html = findFirst(root, 'html')?.attributes ?? {};
  const body = findFirst(root, 'body')?.attributes ?? {};
  return (
    (html.id === 'XF' && html['data-template'] === 'thread_view') ||
    (body.id === 'phpbb' && /(?:^|\s)section-viewtopic(?:\s|$)/.test(body.class ?? ''))
  );
}

const pathWords: [string, RegExp][] = [
  ['path:product', /\/(?:products?|p|dp|itm|item|ip|pdp|listing|app)\/[^/]+/],
  [
    'path:collection',
    /\/(?:collections?|product-category|c|shop|store|cat|browse|departments?|catalog|w|b|s|market)(?:\/|$)/,
  ],
  ['path:category', /\/(?:category|categories|tags?|topics?)(?:\/|$)/],
  [
    'path:listing',
    /\/(?:archives?|directory|directories|lists?|listings?|search|jobs|rankings?|charts?|events|courses|news)(?:\/[^/]*)?$/,
  ],
  [
    'path:thread',
    /\/(?:threads?|topic|t|viewtopic\.php|showthread\.php|questions?|discussions?|forums?|community|comments|index\.php|showtopic[^/]*)(?:\/|\.|$)|\/(?:issues|pulls?|merge_requests)\/\d+(?:\/|$)/,
  ],
  ['path:docs', /\/(?:docs?|documentation|reference|api|manual|man\d?|handbook|wiki|help|support|kb|en)\//],
  ['path:learn', /\/(?:guides?|learn|tutorials?|how-to|academy)(?:\/|$)/],
  ['path:article', /\/(?:blogs?|news|articles?|posts?|story|stories|magazine|insights?|opinion|press|recipes?)\/[^/]+/],
  ['path:dated', /\/20[012]\d(?:\/|-)/],
  [
    'path:service',
    /\/(?:services?|solutions?|features?|pricing|platform|use-cases?|consulting|what-we-do|capabilities|industries|software|plans|programs?)(?:\/|$|\.)/,
  ],
  ['path:about', /\/(?:about|company|terms|privacy|policy|legal)/],
];

/** Adds signals from words that addresses of one type share on most sites. */
function addAddress(add: Add, address: string): void {
  if (!URL.canParse(address)) return;
  const { hostname, pathname, search } = new URL(address);
  const path = pathname.toLowerCase();
  const trimmed = path.replace(/\/$/, '');
  for (const [name, pattern] of pathWords) add(name, pattern.test(path));
  add('path:root', trimmed === '' || /^\/[a-z]{2}(?:-[a-z]{2})?$/.test(trimmed));
  const depth = trimmed.split('/').length - 1;
  add('path:shallow', depth === 1);
  add('path:deep', depth >= 4);
  const last = trimmed.split('/').at(-1) ?? '';
  const words = last.split(/[-_]/).length;
  add('slug:long', words >= 5);
  add('slug:short', words <= 2);
  add('slug:number', /\d{4,}/.test(last));
  add('host:forum', /^(?:forums?|community|discuss\w*|boards?|bbs|answers)\.|forum|board/.test(hostname));
  add(
    'host:docs',
    /^(?:docs?|developers?|api|wiki|help|man\d*|dev|support)\.|readthedocs|\.github\.io$/.test(hostname),
  );
  add('host:blog', /^(?:blog|news)\.|blog|substack|medium/.test(hostname));
  add('host:shop', /^(?:shop|store|buy)\.|shop|store/.test(hostname));
  add('query:search', /[?&](?:q|query|search|s|page|sort|filter|category)=/.test(search));
}

const wordSigns: [string, RegExp][] = [
  ['words:cart', /add to (?:cart|bag|basket|trolley)|in den warenkorb|ajouter au panier|añadir al carrito/i],
  ['words:buy', /\bbuy (?:it )?now\b|in stock|out of stock|sold out|\bsku\b|free returns/i],
  ['words:filter', /\b(?:sort by|filters?|refine)\b/i],
  ['words:results', /\b\d[\d,]* (?:results|items|products)\b|showing (?:all )?\d/i],
  [
    'words:call',
    /get started|book a demo|request a demo|free trial|contact sales|get a (?:free )?quote|talk to (?:us|sales)|schedule a/i,
  ],
  [
    'words:trusted',
    /trusted by|our services|our clients|why choose|testimonials|what our (?:clients|customers)|case stud/i,
  ],
  [
    'words:reply',
    /\b(?:log in|sign in|register) to (?:reply|post|comment)|\breply\b.*\breply\b|joined|posts?:\s*\d|views?:\s*\d/i,
  ],
  ['words:byline', /\b(?:by|written by|posted by|author:?)\s+\p{Lu}\p{L}+ \p{Lu}/u],
  [
    'words:date',
    /\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]* \d{1,2},? 20\d\d|\b\d{1,2} (?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]* 20\d\d/i,
  ],
  ['words:read', /\bmin(?:ute)?s? read\b|updated (?:on )?|published (?:on )?/i],
  [
    'words:next',
    /\bnext\b.{0,20}\bprevious\b|\bprevious\b.{0,20}\bnext\b|on this page|table of contents|edit this page/i,
  ],
  ['words:specs', /specifications?|dimensions|product details|item number|warranty/i],
  ['words:reviews', /\b\d[\d,]* (?:reviews|ratings)\b|customer reviews/i],
  ['words:more', /load more|show more|view all|see all|read more.*read more/i],
];

const wordsCharactersMax = 60_000;

function addWords(add: Add, text: string, title: string): void {
  for (const [name, pattern] of wordSigns) add(name, pattern.test(text));
  add('title:docs', /\b(?:docs?|documentation|reference|manual|api|guide|tutorial)\b/i.test(title));
  add('title:list', /\b(?:best|top|latest|news|jobs|list|rankings?|all)\b|\d+/i.test(title));
  add(
    'title:service',
    /\b(?:services?|solutions?|software|consulting|platform|company|agency|insurance)\b/i.test(title),
  );
  add('title:question', /\?|\bhow (?:to|do)\b|\bwhat (?:is|are)\b|\bwhy\b/i.test(title));
  add('title:shop', /\b(?:buy|shop|price|sale|store|online)\b/i.test(title));
}

const price = /(?:[$€£¥₹]|\b(?:USD|EUR|GBP)\b)\s?\d|\d\s?(?:[€£¥₹]|\b(?:USD|EUR|GBP|kr)\b|zł)/g;

/** Adds the amounts of prose, links, prices, headings, code and repeated parts, in steps. */
function addShape(add: Add, body: HtmlElement, text: string): void {
  const extents = measureText(body);
  const lengths = proseLengths(body);
  const { characters = 0, linked = 0, links = 0 } = extents.get(body) ?? {};
  const prose = lengths.get(body) ?? 0;
  const counts = new Map<string, number>();
  let longParagraphs = 0;
  let articleShare = 0;
  let linkedHeadings = 0;
  for (const element of collect(body, () => true)) {
    counts.set(element.name, (counts.get(element.name) ?? 0) + 1);
    if (element.name === 'p' && (extents.get(element)?.characters ?? 0) > 200) longParagraphs += 1;
    if (element.name === 'article')
      articleShare = Math.max(articleShare, (lengths.get(element) ?? 0) / Math.max(1, prose));
    if (/^h[2-4]$/.test(element.name) && (findFirst(element, 'a') !== undefined || element.parent?.name === 'a'))
      linkedHeadings += 1;
  }
  const count = (...names: string[]): number => names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0);
  const step = (name: string, value: number, ...bounds: number[]): void => {
    for (const bound of bounds) add(`${name}>=${bound}`, value >= bound);
  };
  const prices = text.match(price)?.length ?? 0;
  step('prices', prices, 1, 5, 15, 40);
  step('paragraphs', longParagraphs, 1, 4, 8, 16);
  step('headings', count('h1', 'h2', 'h3', 'h4'), 4, 12, 25);
  step('linkedheadings', linkedHeadings, 4, 12);
  step('code', count('pre'), 1, 4);
  step('inlinecode', count('code'), 5, 25);
  step('tables', count('table'), 1, 4);
  step('times', count('time'), 1, 4, 12);
  step('articles', count('article'), 1, 4, 12);
  step('sections', count('section'), 4, 12);
  step('forms', count('form'), 2, 6);
  step('buttons', count('button'), 15, 50);
  step('images', count('img'), 10, 40);
  step('posts', countPosts(body), 3, 10);
  step('links', links, 100, 300);
  step('characters', characters, 3_000, 10_000, 30_000);
  step('prose%', (100 * prose) / Math.max(1, characters), 20, 40, 60, 80);
  step('linked%', (100 * linked) / Math.max(1, characters), 15, 30, 50);
  step('article%', articleShare * 100, 50);
  step('figures', count('figure', 'blockquote'), 1, 4);
}
