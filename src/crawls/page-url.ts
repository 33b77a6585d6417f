import { canonical } from '../content/robots-file.ts';
import { limits } from '../lib/limits.ts';

/**
 * Normalises the URL of a page: no fragment, no tracking parameters, no session ids, canonical escapes.
 * Undefined if it is not an http(s) page URL. The order of parameters is kept, because it can matter.
 */
export function normalizeUrl(text: string, base?: string): string | undefined {
  const url = text.length > limits.urlCharactersMax ? null : URL.parse(text, base);
  if (url === null) return undefined;
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  if (url.username !== '' || url.password !== '') return undefined;
  url.hash = '';
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.replace(/\.+$/, '');
  const path = canonical(url.pathname.replace(/;(?:jsessionid|phpsessid|sid)=[^/;?]*/gi, ''));
  if (path !== url.pathname) url.pathname = path;
  const parameters = url.search.slice(1).split('&');
  const kept = parameters.filter((parameter) => parameter !== '' && !isTracking(parameter));
  if (kept.length !== parameters.length) url.search = kept.join('&');
  // An empty "?" stays in href until search is set.
  if (url.search === '') url.search = '';
  return url.href;
}

const trackingNames = new Set([
  ...[
    'gclid',
    'gclsrc',
    'dclid',
    'gbraid',
    'wbraid',
    'fbclid',
    'msclkid',
    'yclid',
    'twclid',
    'ttclid',
    'igshid',
    'igsh',
  ],
  ...['mc_cid', 'mc_eid', '_hsenc', '_hsmi', '__hstc', '__hsfp', '__hssc', 'hsctatracking', 'mkt_tok', 'vero_id'],
  ...['oly_anon_id', 'oly_enc_id', '_openstat', 'wickedid', 'rb_clickid', 's_cid', 'srsltid', '_ga', '_gl', 'zanpid'],
  ...['phpsessid', 'jsessionid', 'aspsessionid', 'replytocom', 'sessionid'],
]);

function isTracking(parameter: string): boolean {
  const name = (parameter.split('=', 1)[0] ?? '').toLowerCase();
  return name.startsWith('utm_') || trackingNames.has(name);
}
