import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import { limits } from '../../lib/limits.ts';
import { isGloballyRoutable } from './address.ts';
import type { AllowList } from './allow-list.ts';

type CheckedUrl = { ok: true; url: URL } | { ok: false; problem: string };

/**
 * Checks a URL before any name is resolved: it must be http or https, without credentials, and name a host on the
 * public internet (no private address in any spelling, no name for this machine). `problem` is for the caller.
 */
export function checkUrl(text: string, allow?: AllowList): CheckedUrl {
  if (text.length > limits.urlCharactersMax)
    return { ok: false, problem: `must be at most ${limits.urlCharactersMax} characters long.` };
  if (!URL.canParse(text)) return { ok: false, problem: 'must be an absolute http or https URL.' };
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { ok: false, problem: 'must be http or https.' };
  if (url.username !== '' || url.password !== '')
    return { ok: false, problem: 'must not carry a user name or password.' };
  const host = hostOf(url);
  if (host === '') return { ok: false, problem: 'must name a host.' };
  if (blockedPorts.has(Number(url.port))) return { ok: false, problem: 'must use a port that is allowed for the web.' };
  if (isUnsafeHost(host, allow)) return { ok: false, problem: notPublic };
  return { ok: true, url };
}

const notPublic =
  'must name a host on the public internet. The operator of the server can allow others with QUARRY_FETCH_ALLOW.';

/** The host without IPv6 brackets and trailing dots, with numeric spellings of addresses normalised. */
function hostOf(url: URL): string {
  const bare = url.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
  // To the URL parser, "127.0.0.1.." is a name until its dots are removed.
  const plain = `http://${bare}/`;
  return isIP(bare) === 0 && URL.canParse(plain) ? new URL(plain).hostname : bare;
}

function isUnsafeHost(host: string, allow: AllowList | undefined): boolean {
  if (allow?.allowsHost(host)) return false;
  if (isIP(host) !== 0) return !(isGloballyRoutable(host) || allow?.allowsAddress(host));
  if (!isLocalName(host)) return false;
  return !(allow?.allowsAddress('127.0.0.1') && isLocalName(host, ['localhost']));
}

function isLocalName(host: string, names = ['localhost', 'localdomain']): boolean {
  const label = skeleton(domainToUnicode(host)).split('.').at(-1) ?? '';
  return names.includes(label);
}

/** Folds letters that look like those of "localhost" onto them. The URL parser folds full-width and styled letters. */
function skeleton(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/./gu, (letter) => lookalikes.get(letter) ?? letter);
}

const lookalikes = new Map(
  Object.entries({
    l: 'ӏіıɩ|ⅼιłḷ',
    o: 'оοօ๐໐ѳøɵ',
    c: 'сϲⅽ',
    a: 'аαɑ',
    h: 'һհн',
    s: 'ѕꜱʂ',
    t: 'тτŧ',
    '.': '。.。',
  }).flatMap(([plain, others]) => [...others].map((other) => [other, plain] as const)),
);

/** Ports of other protocols that have been abused through HTTP clients (Fetch standard, "bad port"). */
const blockedPorts = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);
