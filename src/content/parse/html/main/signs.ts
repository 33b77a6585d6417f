import type { HtmlElement } from '../tree.ts';

/** What the names of elements mean: class, id, role, and the tag itself. */

const chromeNames = new Set([
  'nav',
  'dialog',
  'menu',
  'button',
  'select',
  'input',
  'textarea',
  'link',
  'meta',
  'head',
  'title',
]);
const chromeRoles = new Set([
  'navigation',
  'banner',
  'contentinfo',
  'search',
  'dialog',
  'alertdialog',
  'menu',
  'menubar',
  'toolbar',
  'complementary',
  'tooltip',
]);

/** Parts that are never a page's text, by tag or by role. */
export function isChrome(element: HtmlElement): boolean {
  if (chromeNames.has(element.name)) return true;
  return element.attributes.role !== undefined && chromeRoles.has(element.attributes.role.toLowerCase());
}

export function isHidden({ attributes, name }: HtmlElement): boolean {
  if (attributes.hidden !== undefined && streamedId.test(attributes.id ?? '')) return false;
  if (attributes.hidden !== undefined && name !== 'body') return true;
  if (attributes['aria-hidden'] === 'true' && name !== 'span' && name !== 'img' && name !== 'math' && name !== 'a')
    return true;
  const style = attributes.style;
  return style !== undefined && /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

/** A hidden box with this share of a page's text is the page itself, revealed by a script. */
export const hiddenShareMax = 0.5;

/** React streams parts of a page as hidden boxes that a script moves to their place. */
const streamedId = /^S:[0-9a-f]+$/;

type Words = { words: readonly string[]; unlikely: boolean };

const noWords: Words = { words: [], unlikely: false };

/** Copies of an element share its attributes, and a page is copied and checked several times. */
const knownWords = new WeakMap<Record<string, string>, Words>();

/** The words of class and id ("post-shareButtons" is post, share, buttons), and whether they speak against content. */
function readWords({ attributes }: HtmlElement): Words {
  if (attributes.class === undefined && attributes.id === undefined) return noWords;
  const known = knownWords.get(attributes);
  if (known !== undefined) return known;
  const words = splitWords(`${attributes.class ?? ''} ${attributes.id ?? ''}`);
  const unlikely =
    words.some((word) => unlikelyWords.has(word) || unlikelyParts.test(word)) || unlikelyPhrases.test(words.join(' '));
  const found = { words, unlikely };
  knownWords.set(attributes, found);
  return found;
}

/** Names that page builders give to every box, and names that say on which screens a box is shown. */
const neutralNames =
  /(?<![\w-])(?:elementor-(?:widget(?:-(?:container|wrap|text-editor|heading|image|html|shortcode))?|element|hidden-\w+)|field-{1,2}label-hidden|(?:\w+:)?(?:hidden|visible)-[\w-]+|\w+:hidden)(?![\w-])/g;

/** `hidden md:block` is shown on wide screens. */
const shownOnSome = /\s\w+:(?:block|flex|grid|inline)/;

function splitWords(names: string): string[] {
  if (names.length < 2 || names.length > 1_000) return [];
  return (shownOnSome.test(names) ? names.replace(/(?<![\w:-])hidden(?![\w:-])/g, '') : names)
    .replace(neutralNames, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

const unlikelyWords = new Set(
  (
    'share sharing shares sharebar sharethis addthis addtoany sharedaddy social socials breadcrumb breadcrumbs crumbs ' +
    'newsletter newsletters subscribe subscription signup optin cookie cookies consent gdpr popup modal overlay lightbox ' +
    'advert adverts advertisement advertising ads ad adsense adbox adslot dfp sponsor sponsored promo promos promotion promoted ' +
    'related recommend recommended recommendations outbrain taboola trending popular comment comments commentlist disqus ' +
    'respond replies sidebar sidebars rail widget widgets nav navbar navigation menu menus submenu footer masthead topbar ' +
    'pagination pager paginate authorbox bio tags taglist tagcloud toolbar skip byline dateline metadata ' +
    'login signin register search searchform banner banners carousel slideshow paywall premium donate donation ' +
    'taxonomy feedback rating ratings vote poll survey print printonly copyright disclaimer credits legal toc hatnote navbox catlinks ' +
    'mw-editsection editsection noprint rollover tooltip popover dropdown hovercard teaser teasers relatedposts gallery galleries sr visuallyhidden screenreader hidden invisible'
  ).split(' '),
);

/** Names that are written as one word. */
const unlikelyParts =
  /^(?:related|share|social|newsletter|breadcrumb|advert|cookie|sidebar|author(?:bio|box|info)|comment(?:s|list|form)|recommend|slideshow|sponsor|mostread|mostpopular|googlead|adsby|tagcloud|resgallery|inlinegallery)/;

const unlikelyPhrases =
  /(?:^| )(?:read (?:more|next|also)|more (?:news|stories|from|articles|posts|on|in)|also (?:like|read)|you may|next (?:post|article|up|prev)|prev next|prev(?:ious)? (?:post|article)|post (?:nav|meta|tags|footer|author|share|info)|entry (?:meta|footer|utility)|article (?:meta|footer|tags|share|info|tools)|author (?:bio|box|info|card|about|block|profile)|about (?:the )?author|latest (?:news|posts|stories)|most (?:read|popular|viewed)|top stories|tag (?:list|cloud|links)|sign up|call to action|in this article|sub ?nav|side ?bar|site (?:header|footer|nav)|page (?:footer|nav)|global (?:header|footer|nav)|whats ?app|face ?book|twitter|pinterest|linked ?in|screen reader|visually hidden|sr only)(?: |$)/;

export function isUnlikely(element: HtmlElement): boolean {
  if (
    [
      'body',
      'html',
      'main',
      'article',
      'h1',
      'a',
      'blockquote',
      'code',
      'pre',
      'math',
      'table',
      'tbody',
      'tr',
    ].includes(element.name)
  )
    return false;
  return readWords(element).unlikely;
}

const likelyPhrases =
  /(?:^| )(?:article ?body|article ?text|article ?content|story ?body|story ?text|story ?content|post ?body|post ?content|post ?text|entry ?content|body ?content|body ?text|page ?content|main ?content|content ?body|content ?main|rich ?text|markdown(?: body)?|blog ?post|hentry|h ?entry|entry|article|story|post|content|main|text|body|page|blog)(?: |$)/;

export function isLikelyContent(element: HtmlElement): boolean {
  if (element.attributes.itemprop === 'articleBody') return true;
  return likelyPhrases.test(readWords(element).words.join(' '));
}

/** Whether an element is a note: set apart from the text, but part of it. */
export function isNote(element: HtmlElement): boolean {
  return readWords(element).words.some((word) => noteWords.test(word));
}

const noteWords =
  /^(?:note|tip|hint|info|warning|caution|danger|important|admonition|callout|remark|footnotes?|endnotes?)$/;

export function isCaption(element: HtmlElement): boolean {
  if (element.name === 'figcaption') return true;
  if (!['p', 'div', 'span', 'small', 'em', 'figure', 'dd', 'cite'].includes(element.name)) return false;
  const words = readWords(element).words;
  return (
    words.some((word) => /^(?:caption|captions|credit|photocredit|imagecaption|legend)$|caption$/.test(word)) &&
    !words.includes('table')
  );
}

/** The summary under a title. */
export function isLede(element: HtmlElement): boolean {
  if (element.attributes.itemprop === 'description') return true;
  return readWords(element).words.some((word) => ledeWords.test(word));
}

const ledeWords =
  /^(?:lead|lede|leadtext|intro|introtext|introduction|summary|standfirst|deck|dek|teasertext|subtitle|subheadline|subhead|abstract|perex|chapo|chapeau|vorspann|anleser|sommaire|ingress|entradilla|bajada)$/;

/** How lines start that only point to another page, in several languages. */
export const pointerStart =
  /^\W*(?:read (?:more|also|next|this)|see (?:more|also)|also read|also see|more (?:on|from|about)|related(?: (?:story|stories|article|articles|content|posts?|news))?\s*[:\-–]|don'?t miss|watch(?: (?:more|now|also|video))?\s*:|click here|continue reading|view (?:more|gallery)|learn more\b.{0,30}$|up next|next (?:up|article)|lesen sie (?:auch|mehr|hier)|mehr (?:zum thema|dazu|lesen)|zum weiterlesen|siehe auch|auch interessant|lire aussi|à lire|voir aussi|leia (?:mais|também|tambem)|veja (?:mais|também)|saiba mais|lea también|lee (?:también|más)|leer más|te puede interesar|ver más|leggi anche|guarda anche|lees (?:ook|meer)|zobacz (?:też|także|również)|czytaj (?:też|także|również|więcej)|читайте (?:также|ещё)|関連記事|相关阅读|延伸阅读)/i;

/** Lines that ask the reader to do something unrelated to the text. */
export const callToAction =
  /^(?:like this (?:story|article|post)\?|share (?:this|on|it|via)\b|follow (?:us|[\p{L}]+(?: [\p{L}]+)?) on (?:twitter|facebook|instagram|x|linkedin|youtube)|(?:sign up|subscribe) (?:to|for|now|here|today)\b|join (?:our|the) (?:newsletter|mailing list|conversation)|click here to\b|write to .{2,40} at \S+@|(?:reach|email|contact) (?:the )?(?:reporter|author|writer)s?\b|tell us what you think|leave a (?:comment|reply)|advert(?:isement)?$|text size$|image \d+ of \d+$|media playback is unsupported|(?:tweet|share|print|email|comments?|close|caption|facebook|twitter|whatsapp|pinterest|linkedin|google\+?)$|tags?:$)/iu;

/** Headings above links to other pages. */
export const relatedHeading =
  /^\W*(?:related(?: (?:articles?|stories|posts?|news|content|links?|topics|reading|products))?|(?:you )?(?:may|might) (?:also )?(?:like|be interested(?: in)?)|you(?:'ll| will) also (?:like|love)|more (?:news|stories|articles|posts|from\b.{0,40}|on this (?:topic|story)|in this section)|recommended(?: (?:for you|articles?|stories|posts|reading))?|read (?:more|next|also)|see also|don'?t miss|latest (?:news|posts|articles|stories)|recent (?:posts|articles|news)|(?:most|trending) (?:read|popular|viewed|now|stories)|popular (?:posts|articles|now)|trending|comments?(?: \(\d+\))?|leave a (?:comment|reply)|about the author|share this(?: (?:article|story|post))?|tags|(?:das )?könnte (?:sie|dich|ihnen|dir) auch (?:interessieren|gefallen)|mehr zum thema|zum weiterlesen|auch interessant|weitere (?:artikel|themen|meldungen)|ähnliche (?:artikel|beiträge)|lesen sie auch|kommentare|sur le même sujet|articles (?:liés|similaires)|à lire aussi|vous aimerez aussi|(?:você )?(?:também )?pode(?: também)? (?:gostar|interessar)\b.{0,10}|leia (?:também|mais)|relacionad[oa]s|artículos relacionados|noticias relacionadas|(?:te|le) puede interesar|también te puede\b.{0,20}|potrebbe(?:ro)? interessarti.{0,10}|leggi anche|articoli correlati|gerelateerd|lees ook|zobacz (?:też|także|również)|czytaj (?:też|także)|powiązane|похожие\b.{0,20}|читайте также|関連記事|おすすめ|相关(?:文章|阅读|推荐))\W*$/iu;
