import type { HtmlElement } from '../tree.ts';

/**
 * Classifies boxes by their names. Single words also occur in the middle of other names (`elementor-widget-text`,
 * `field-label-hidden`), so the last meaningful word of the whole name decides.
 */

/** Class names of page builders and frameworks that describe how a box looks and not its role. */
const builderName =
  /^(?:elementor|e-con|wp-block|wp-elements|et_pb|et-|vc_|wpb_|fl-|field--?|fields?$|views?-|paragraph--?|tve_|brxe?-|kt-|kb-|stk-|ct-|fusion-|avia-|css-|sc-|jsx-|svelte-|astro-|chakra-|Mui|mantine-|ant-|framer-|w-(?:full|\d)|is-|has-|js-|u-|no-|not-|with-|without-|hide-|show-|hidden-|visible-)/;

/** Words in names that only describe where a box is or how it looks. */
const formWord =
  /^(?:container|wrapper|wrap|wrapped|inner|outer|section|block|box|area|bar|row|col|column|columns|list|lists|links|link|module|component|panel|holder|region|group|desktop|mobile|tablet|top|bottom|left|right|primary|secondary|tertiary|main|global|site|page|the|new|default|base|root|body|content|element|view|widget|div|id|no|\d+|v\d+|[a-z])$/;

const chromeWord =
  /^(?:footer|footers|sitefooter|pagefooter|breadcrumb|breadcrumbs|crumb|crumbs|breadcrumblist|cookie|cookies|cookiebanner|consent|gdpr|onetrust|newsletter|newsletters|popup|popups|modal|modals|dialog|lightbox|navbar|nav|navs|navigation|subnav|sitenav|mainnav|topnav|menu|menus|megamenu|submenu|social|socials|socialmedia|sharing|share|sharebar|sharethis|addthis|addtoany|pagination|pager|paginator|toolbar|topbar|topnavigation|searchform|searchbar|searchbox|minicart|cart|basket|offcanvas|drawer|subscribe|subscription|signup|copyright|toast|tooltip|masthead|siteheader|usercentrics|disclosure-menu|chatbot|livechat|advert|adverts|advertisement|adsense|dfp|ads|ad|sponsored|skip|skiplink|skiplinks|toc|backtotop|preloader|spinner|loader|login|signin|register|localization|language-selector|geolocation|sr|srtext)$/;

const chromePhrase =
  /(?:^|-)(?:cookies?-(?:banner|notice|consent|bar|policy|settings|preferences|message|text|wrapper)|accept-cookies|back-to-top|skip-(?:to|link|nav)|site-(?:header|footer|nav)|(?:main|primary|top|global|site|header|footer|mobile)-(?:menu|nav|navigation)|share-(?:buttons?|links?|icons?)|social-(?:links?|icons?|media|share)|visually-hidden|visuallyhidden|screen-reader(?:-text|-only)?|sr-only|slick-cloned|slide-duplicate|announcement-bar|country-selector|currency-(?:selector|switcher)|language-(?:selector|switcher)|mailing-list|sign-?up-form|print-only|advertisement)(?:$|-)/;

/** A menu of questions contains their answers, too. */
export const questions = /(?:^|-)(?:faqs?|accordions?)(?:-|$)/;

type Names = { names: readonly string[]; heads: readonly string[]; chrome: boolean; panel: boolean };

const unnamed: Names = { names: [], heads: [], chrome: false, panel: false };

/** The names of an element: each class, and its id, in kebab case. */
export function namesOf(element: HtmlElement): readonly string[] {
  return readNames(element).names;
}

/** Copies of an element share its attributes, and a page is copied and checked several times. */
const knownNames = new WeakMap<Record<string, string>, Names>();

function readNames({ attributes }: HtmlElement): Names {
  if (attributes.class === undefined && attributes.id === undefined) return unnamed;
  const known = knownNames.get(attributes);
  if (known !== undefined) return known;
  const names = splitNames(`${attributes.class ?? ''} ${attributes.id ?? ''}`);
  const heads = names.map(headWord);
  const chrome = names.some(
    (name, at) => (chromeWord.test(heads[at] ?? '') && !questions.test(name)) || chromePhrase.test(name),
  );
  const panel = names.some((name) => panelWord.test(name));
  const found = names.length === 0 ? unnamed : { names, heads, chrome, panel };
  knownNames.set(attributes, found);
  return found;
}

/** The suffix that styled components append to a name: `Footer-sc-d11cfc8d-0`. */
const generatedSuffix = /-sc-[0-9a-f]{6,8}-\d+$/;

function splitNames(text: string): string[] {
  if (text.length < 3 || text.length > 2_000) return [];
  return text
    .split(/\s+/)
    .filter((name) => name !== '' && name.length < 80 && !name.includes(':') && !builderName.test(name))
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
  for (let at = words.length - 1; at >= 0; at--) if (!formWord.test(words[at] ?? '')) return words[at] ?? '';
  return words.at(-1) ?? '';
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

const panelWord =
  /(?:^|-)(?:accordions?|collapse|collapsible|tabpanel|tab|tabs|faqs?|answer|expandable|expander|expand|toggle|panel|disclosure|readmore|read-more)(?:-|$)/;

/** Whether the reader opens this part with a click: initially hidden, but content. */
export function isPanel(element: HtmlElement): boolean {
  const { role } = element.attributes;
  if (role === 'tabpanel' || role === 'region') return true;
  return readNames(element).panel || (element.parent !== undefined && readNames(element.parent).panel);
}
