import type { PageMetadata } from '../content/parse/html/metadata.ts';

/**
 * Pages that generators of documentation write beside the documents: indexes of names, lists of all pages, listings of
 * source code. They repeat the names of other pages without what these say, and there are many of them. Only names that
 * nobody else gives a page are here: `globals.html` is also written by people.
 */
const names = [
  // Sphinx
  ...['genindex(?:-[^/]+)?', '(?:[a-z]+-)?modindex'],
  // Javadoc
  ...['index-all', 'index-files/index-\\d+', 'allclasses(?:-index|-frame|-noframe)?', 'allpackages-index'],
  ...['overview-(?:tree|frame)', 'package-(?:tree|use|frame)', 'class-use/[^/]+', 'help-doc'],
  // Doxygen
  ...['[^/]+_8[a-z0-9_]+_source', '(?:class|struct|union|interface|namespace)[^/]+-members'],
  ...['dir_(?:[0-9a-f]{32}|\\d{6}_\\d{6})', 'graph_legend', 'namespacemembers(?:_[a-z0-9_]+)?'],
  '(?:functions|globals)_(?:[a-z~]|0x[0-9a-f]+|(?:func|vars|type|enum|eval|prop|rela|evnt|defs)(?:_[a-z0-9~]+)?)',
];
const pages = new RegExp(`/(?:${names.join('|')})\\.(?:x?html?|php)$`);
/** Sphinx writes each page as a folder if it is told to; MkDocs does so by default. */
const folders = /\/(?:genindex(?:-[^/]+)?|(?:[a-z]+-)?modindex|print_page)\/(?:index\.html)?$/;
const sourceFolders = /\/(?:_modules|_sources)\//;

/**
 * Whether a page that was read is one of those: a search form, as Sphinx marks it, or the whole manual for printing, which
 * mdBook asks search engines to leave out.
 */
export function saysItIsGenerated(path: string, page: Pick<PageMetadata, 'isSearch' | 'noindex'>): boolean {
  return page.isSearch || (page.noindex && path.endsWith('/print.html'));
}

/** Whether a path is one of those pages. */
export function isGeneratedPage(path: string): boolean {
  return pages.test(path) || folders.test(path) || sourceFolders.test(path);
}
