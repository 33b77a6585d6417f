import type { HtmlElement } from '../tree.ts';
import {
  besideArticlePhrases,
  besideArticleStarts,
  besideArticleWords,
  builderStarts,
  captionWords,
  formWords,
  ledeWords,
  likelyPhrases,
  noteWords,
  panelWords,
  sitePhrases,
  siteWords,
} from './name-words.ts';

/**
 * What the names of elements, their classes and ids, say about their role. On any page, the last meaningful word of a
 * name decides, because single words also occur in the middle of other names (`elementor-widget-text`,
 * `field-label-hidden`). Beside the text of an article, any word counts, and more words do.
 */
type Names = {
  /** Each class, and the id, in kebab case, without those of page builders. */
  names: readonly string[];
  /** The last meaningful word of each. */
  heads: readonly string[];
  /** All words of all names. */
  words: readonly string[];
  chrome: boolean;
  unlikely: boolean;
  panel: boolean;
};

const unnamed: Names = { names: [], heads: [], words: [], chrome: false, unlikely: false, panel: false };

/** Copies of an element share its attributes, and a page is copied and checked several times. */
const knownNames = new WeakMap<Record<string, string>, Names>();

function readNames({ attributes }: HtmlElement): Names {
  if (attributes.class === undefined && attributes.id === undefined) return unnamed;
  const known = knownNames.get(attributes);
  if (known !== undefined) return known;
  const named = `${attributes.class ?? ''} ${attributes.id ?? ''}`;
  const found = knownTexts.get(named) ?? judgeNames(named);
  knownNames.set(attributes, found);
  if (named.length <= knownCharactersMax) {
    if (knownTexts.size >= knownTextsMax) knownTexts.clear();
    knownTexts.set(named, found);
  }
  return found;
}

/** The elements of a page, and the pages of a site, often have the same names. */
const knownTexts = new Map<string, Names>();
const knownTextsMax = 4_096;
const knownCharactersMax = 200;

function judgeNames(named: string): Names {
  const text = ofPost.test(named) ? named.replaceAll(subjectOfPost, '') : named;
  const names = splitNames(text);
  const heads = names.map(headWord);
  const words = splitWords(text);
  return {
    names,
    heads,
    words,
    chrome: names.some((name, at) => (isSiteWord(heads[at] ?? '') && !questions.test(name)) || sitePhrase.test(name)),
    unlikely:
      words.some((word) => besideArticle.has(word) || besideArticleStart.test(word)) ||
      besideArticlePhrase.test(words.join(' ')),
    panel: names.some((name) => panelWord.test(name)),
  };
}

/** WordPress names a post after its subjects, too: `category-sponsors`, `tag-comments`. */
const ofPost = /(?:^|\s)(?:hentry|type-[a-z]\S*|status-publish)(?:\s|$)/;
const subjectOfPost = /(?<!\S)(?:category|tag|author|product_(?:cat|tag))-\S+/g;

const site = new Set(siteWords);
const besideArticle = new Set([...siteWords, ...besideArticleWords]);
const form = new Set(formWords);
const sitePhrase = within(sitePhrases, '-');
const besideArticlePhrase = within(besideArticlePhrases, ' ');
const likelyPhrase = within(likelyPhrases, ' ');
const panelWord = within(panelWords, '-');
const besideArticleStart = new RegExp(`^(?:${besideArticleStarts.join('|')})`);
const builderStart = new RegExp(`^(?:${builderStarts.join('|')})`);

/** Matches one of the patterns as whole words of a name. */
function within(patterns: string[], separator: string): RegExp {
  return new RegExp(`(?:^|${separator})(?:${patterns.join('|')})(?:${separator}|$)`);
}

function isSiteWord(word: string): boolean {
  return site.has(word);
}

/** The suffix that styled components append to a name: `Footer-sc-d11cfc8d-0`. */
const generatedSuffix = /-sc-[0-9a-f]{6,8}-\d+$/;

function splitNames(text: string): string[] {
  if (text.length < 3 || text.length > 2_000) return [];
  return text
    .split(/\s+/)
    .filter((name) => name !== '' && name.length < 80 && !name.includes(':') && !builderStart.test(name))
    .map((name) =>
      name
        .replace(generatedSuffix, '')
        .replace(/([a-z])([A-Z])/g, '$1-$2')
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, ''),
    );
}

/** The last word of a name that describes the role of the box: `footer` in `site-footer__inner`. */
function headWord(name: string): string {
  const words = name.split('-');
  return words.findLast((word) => !form.has(word) && !counter.test(word)) ?? words.at(-1) ?? '';
}

const counter = /^(?:v?\d+|[a-z])$/;

/** Names that page builders give to every box, and names that say on which screens a box is shown. */
const neutralNames =
  /(?<![\w-])(?:elementor-(?:widget(?:-(?:container|wrap|text-editor|heading|image|html|shortcode))?|element|hidden-\w+)|field-{1,2}label-hidden|(?:\w+:)?(?:hidden|visible)-[\w-]+|\w+:hidden)(?![\w-])/g;

/** `hidden md:block` is shown on wide screens. */
const shownOnSome = /\s\w+:(?:block|flex|grid|inline)/;

/** The words of class and id: "post-shareButtons" is post, share, buttons. */
function splitWords(names: string): string[] {
  if (names.length < 3 || names.length > 1_000) return [];
  return (shownOnSome.test(names) ? names.replace(/(?<![\w:-])hidden(?![\w:-])/g, '') : names)
    .replace(neutralNames, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

/** A menu of questions contains their answers, too. */
export const questions = /(?:^|-)(?:faqs?|accordions?)(?:-|$)/;

/** Also with what it is of: `commentlist`, `comment_text`, `commentbody`. */
const comments = /(?:^|-)(?:comment(?!ar|at|ing|-on-)[a-z]*|disqus|respond)(?:-|$)/;

/** Whether a box holds the comments of readers or one of them. */
export function isComments(element: HtmlElement): boolean {
  return !textNames.has(element.name) && hasName(element, comments);
}

/** The names of an element: each class, and its id, in kebab case. */
export function namesOf(element: HtmlElement): readonly string[] {
  return readNames(element).names;
}

export function isNamed(element: HtmlElement, word: RegExp, phrase?: RegExp): boolean {
  const { heads } = readNames(element);
  return heads.some((head) => word.test(head)) || (phrase !== undefined && hasName(element, phrase));
}

/** Whether one of an element's whole names matches. */
export function hasName(element: HtmlElement, phrase: RegExp): boolean {
  return readNames(element).names.some((name) => phrase.test(name));
}

/** Whether a name says that the element is navigation, a footer, a banner, an overlay or a tool. */
export function isNamedChrome(element: HtmlElement): boolean {
  return readNames(element).chrome;
}

/** Elements of a text, which their names do not turn into something else. */
const textNames = new Set(
  'body html main article h1 h2 h3 h4 h5 h6 a blockquote code pre math table tbody tr'.split(' '),
);

/** Whether a name says that the element is beside the text of an article and not part of it. */
export function isUnlikely(element: HtmlElement): boolean {
  return !textNames.has(element.name) && readNames(element).unlikely;
}

/** Whether the reader opens this part with a click: initially hidden, but content. */
export function isPanel(element: HtmlElement): boolean {
  const { role } = element.attributes;
  if (role === 'tabpanel' || role === 'region' || element.parent?.name === 'details') return true;
  return readNames(element).panel || (element.parent !== undefined && readNames(element.parent).panel);
}

const slide = /(?:^|-)(?:slide|(?:carousel|slider)-(?:item|cell))$/;
const slideCopy = /(?:^|-)(?:clone|cloned|duplicate)$/;

/** Whether the element is a part of a slider, which all but one of are hidden, and not a copy of another part. */
export function isSlide(element: HtmlElement): boolean {
  return hasName(element, slide) && !hasName(element, slideCopy);
}

export function isLikelyContent(element: HtmlElement): boolean {
  if (element.attributes.itemprop === 'articleBody') return true;
  return likelyPhrase.test(readNames(element).words.join(' '));
}

const notes = new Set(noteWords);

/** Whether an element is a note: set apart from the text, but part of it. */
export function isNote(element: HtmlElement): boolean {
  return readNames(element).words.some((word) => notes.has(word));
}

const captions = new Set(captionWords);
const captionNames = new Set('p div span small em figure dd cite'.split(' '));

export function isCaption(element: HtmlElement): boolean {
  if (element.name === 'figcaption') return true;
  if (!captionNames.has(element.name)) return false;
  const { words } = readNames(element);
  return words.some((word) => captions.has(word) || word.endsWith('caption')) && !words.includes('table');
}

const ledes = new Set(ledeWords);

/** The summary under a title. */
export function isLede(element: HtmlElement): boolean {
  if (element.attributes.itemprop === 'description') return true;
  return readNames(element).words.some((word) => ledes.has(word));
}
