import { itemValue, plainValue, type Thing } from './linked-data.ts';
import type { PageType } from './page-types.ts';
import { collect, findAll, type HtmlElement, textLength, textOf } from './tree.ts';

/** The facts in a page's metadata, from JSON-LD, otherwise microdata, otherwise meta tags: as text, not interpreted. */
export type Structured = {
  type?: string;
  name?: string;
  author?: string;
  published?: string;
  modified?: string;
  description?: string;
  brand?: string;
  sku?: string;
  price?: string;
  currency?: string;
  availability?: string;
  rating?: string;
  rating_count?: string;
};

const valueCharactersMax = 1_000;

/** The schema.org types of a page of this type, best first. */
const subjectTypes: Partial<Record<PageType, RegExp>> = {
  product: /^(?:Product|ProductGroup|IndividualProduct|SoftwareApplication|Book|VideoGame|Movie)$/,
  forum: /^(?:DiscussionForumPosting|QAPage|Question)$/,
  service: /^(?:Service|ProfessionalService|SoftwareApplication|WebApplication|Course|LocalBusiness|Organization)$/,
  listing: /^(?:CollectionPage|ItemList|SearchResultsPage)$/,
  collection: /^(?:CollectionPage|ItemList|OfferCatalog)$/,
};
const articleTypes = /^(?:\w*Article|BlogPosting|Report|Review|LiveBlogPosting|Recipe|HowTo|TechArticle)$/;

export function readStructured(
  root: HtmlElement,
  facts: { things: Thing[]; meta: Map<string, string> },
  pageType: PageType,
): Structured {
  const wanted = subjectTypes[pageType] ?? articleTypes;
  const thing =
    facts.things.find(({ types }) => types.some((type) => wanted.test(type))) ??
    facts.things.find(({ types }) => types.some((type) => articleTypes.test(type))) ??
    facts.things.find(({ types }) => types.includes('WebPage'));
  const stated = {
    ...fromMeta(facts.meta),
    ...fromMicrodata(root, wanted),
    ...(thing ? fromThing(thing, wanted) : {}),
  };
  return Object.fromEntries(
    Object.entries(stated)
      .map(([key, value]) => [key, collapseSpace(value)])
      .filter(([, value]) => value !== undefined),
  );
}

function fromThing({ types, properties }: Thing, wanted: RegExp): Structured {
  const offer = firstObject(properties.offers);
  const specification = firstObject(offer?.priceSpecification);
  const rating = firstObject(properties.aggregateRating);
  return present({
    type: types.find((type) => wanted.test(type)) ?? types[0],
    name: text(properties.name) ?? text(properties.headline),
    author: nameOf(properties.author),
    published: text(properties.datePublished),
    modified: text(properties.dateModified),
    description: text(properties.description),
    brand: nameOf(properties.brand),
    sku: text(properties.sku),
    price: text(offer?.price) ?? text(offer?.lowPrice) ?? text(specification?.price),
    currency: text(offer?.priceCurrency) ?? text(specification?.priceCurrency),
    availability: text(offer?.availability)?.replace(/^.*\//, ''),
    rating: text(rating?.ratingValue),
    rating_count: text(rating?.reviewCount) ?? text(rating?.ratingCount),
  });
}

const itemProperties: Record<string, keyof Structured> = {
  name: 'name',
  author: 'author',
  datePublished: 'published',
  dateModified: 'modified',
  description: 'description',
  brand: 'brand',
  sku: 'sku',
  price: 'price',
  priceCurrency: 'currency',
  availability: 'availability',
  ratingValue: 'rating',
  reviewCount: 'rating_count',
};

/** The first item of such a type, with the properties below it. */
function fromMicrodata(root: HtmlElement, wanted: RegExp): Structured {
  const item = collect(root, ({ attributes }) => wanted.test((attributes.itemtype ?? '').replace(/^.*\//, '')))[0];
  if (item === undefined) return {};
  const found: Structured = { type: (item.attributes.itemtype ?? '').replace(/^.*\//, '') };
  for (const element of collect(item, ({ attributes }) => attributes.itemprop !== undefined)) {
    const key = itemProperties[element.attributes.itemprop ?? ''];
    const value = itemValue(key === 'author' ? namedIn(element) : element);
    if (key !== undefined && value !== '') found[key] ??= key === 'availability' ? value.replace(/^.*\//, '') : value;
  }
  return found;
}

/** The name of a person, which may have their points and badges after it. */
function namedIn(person: HtmlElement): HtmlElement {
  const name = collect(person, ({ attributes }) => attributes.itemprop === 'name')[0];
  if (name !== undefined) return name;
  const link = findAll(person, 'a').find((one) => textLength(one) > 0);
  return link !== undefined && textOf(person).startsWith(textOf(link)) ? link : person;
}

function fromMeta(meta: Map<string, string>): Structured {
  return present({
    author: meta.get('author') ?? meta.get('article:author') ?? meta.get('citation_author'),
    published: meta.get('article:published_time') ?? meta.get('datepublished') ?? meta.get('citation_publication_date'),
    modified: meta.get('article:modified_time') ?? meta.get('og:updated_time'),
    price: meta.get('product:price:amount') ?? meta.get('og:price:amount'),
    currency: meta.get('product:price:currency') ?? meta.get('og:price:currency'),
    availability: meta.get('product:availability') ?? meta.get('og:availability'),
    brand: meta.get('product:brand') ?? meta.get('og:brand'),
  });
}

function firstObject(value: unknown): Record<string, unknown> | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'object' && first !== null ? (first as Record<string, unknown>) : undefined;
}

function nameOf(value: unknown): string | undefined {
  const names = [value]
    .flat()
    .slice(0, 10)
    .flatMap((one) => text(one) ?? text(firstObject(one)?.name) ?? []);
  return names.length === 0 ? undefined : names.join(', ');
}

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? plainValue(value) : undefined;
}

function present(
  values: Record<keyof Structured, string | undefined> | Partial<Record<keyof Structured, string | undefined>>,
): Structured {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function collapseSpace(value: string): string | undefined {
  const clean = value
    .replace(/<[^>]*>/g, ' ')
    .replace(/[\s\0]+/g, ' ')
    .trim()
    .slice(0, valueCharactersMax)
    .toWellFormed();
  return clean === '' ? undefined : clean;
}
