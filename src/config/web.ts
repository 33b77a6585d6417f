import { contact, headerToken, host, nameOf, target } from './forms.ts';
import { integer, list, oneOf, secretText, text, url } from './values.ts';

/** The types of documents that an extractor may read. */
const extractorTypes = ['pdf', 'docx', 'pptx', 'xlsx', 'odt', 'ods', 'odp', 'epub', 'rtf', 'image'];

/** The settings for requests to other hosts: fetches, the renderer and crawls. */
export const webSettings = {
  fetchAllow: list(
    'QUARRY_FETCH_ALLOW',
    [],
    'CIDRs, addresses and host names (*.name for subdomains) that may be fetched in addition to the public internet.',
    target,
  ),
  fetchContact: text(
    'QUARRY_FETCH_CONTACT',
    undefined,
    'E-mail address or URL in the User-Agent, for owners of crawled sites.',
    contact,
  ),
  renderer: url(
    'QUARRY_RENDERER',
    undefined,
    'Debugging address of a Chromium that renders pages whose text needs scripts. Unset: they fail with needs_browser.',
  ),
  rendererProxyHost: text(
    'QUARRY_RENDERER_PROXY_HOST',
    '127.0.0.1',
    'Address of this machine that the renderer can reach; its pages use the network through a proxy there.',
    host,
  ),
  rendererPages: integer(
    'QUARRY_RENDERER_PAGES',
    2,
    { min: 1, max: 64 },
    'Pages of one app that this process renders concurrently; the same number is reserved for other apps.',
  ),
  rendererSeconds: integer('QUARRY_RENDERER_SECONDS', 20, { min: 1, max: 300 }, 'Time to render one page.'),
  extractorUrl: url(
    'QUARRY_EXTRACTOR_URL',
    undefined,
    'Base URL of a docling-serve or Apache Tika server that reads documents of chosen types.',
  ),
  extractorKind: oneOf('QUARRY_EXTRACTOR_KIND', 'docling', ['docling', 'tika'], 'What the extractor is.'),
  extractorTypes: list(
    'QUARRY_EXTRACTOR_TYPES',
    ['pdf'],
    `Types that the extractor reads: ${extractorTypes.join(', ')}.`,
    nameOf(extractorTypes),
  ),
  extractorKey: secretText('QUARRY_EXTRACTOR_KEY', 'Key of the extractor.', headerToken),
  extractorSeconds: integer(
    'QUARRY_EXTRACTOR_SECONDS',
    60,
    { min: 1, max: 3_600 },
    'Time that the extractor may take for one document.',
  ),
  crawlConcurrency: integer(
    'QUARRY_CRAWL_CONCURRENCY',
    8,
    { min: 1, max: 64 },
    'Pages of one crawl fetched concurrently.',
  ),
  crawlHostConcurrency: integer(
    'QUARRY_CRAWL_HOST_CONCURRENCY',
    8,
    { min: 1, max: 64 },
    'Concurrent requests to one host, over all crawls of all processes.',
  ),
  crawlHostDelayMs: integer(
    'QUARRY_CRAWL_HOST_DELAY_MS',
    0,
    { min: 0, max: 60_000 },
    'Pause between two requests to one host whose robots.txt sets none, over all processes.',
  ),
};
