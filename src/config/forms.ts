import { isIP } from 'node:net';

/** What the text of a setting must look like, in words that follow "must be", with an example. */
export type Form = { words: string; example: string; accepts(text: string): boolean };

const hostName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = isIP(address);
  return rest.length === 0 && version !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}

/** Where to listen. Digits and dots that are not an address are a mistake, not a name. */
export const host: Form = {
  words: 'an address or a host name, without a port',
  example: '0.0.0.0',
  accepts: (text) => isIP(text) !== 0 || (hostName.test(text) && !/^[\d.]+$/.test(text)),
};

export const origin: Form = {
  words: 'an origin without a path, or *',
  example: 'https://app.example.com',
  // Apps and extensions have schemes of their own.
  accepts: (text) =>
    text === '*' ||
    (/^https?:/.test(text)
      ? URL.canParse(text) && new URL(text).origin === text
      : /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/.test(text)),
};

export const proxy: Form = {
  words: 'an address, a CIDR, or one of loopback, linklocal and uniquelocal',
  example: '10.0.0.0/8',
  accepts: (text) => isIP(text) !== 0 || isCidr(text) || ['loopback', 'linklocal', 'uniquelocal'].includes(text),
};

export const target: Form = {
  words: 'a CIDR, an address, a host name or *.name, without a scheme, port or path',
  example: '10.20.0.0/16',
  accepts: (text) =>
    isCidr(text) || host.accepts(text.replace(/^\*\./, '')) || isIP(text.replace(/^\[|\]$/g, '')) !== 0,
};

/** Sent in a header, which would otherwise fail with each request. */
export const headerToken: Form = {
  words: 'printable ASCII without spaces',
  example: 'sk-4f1c29',
  accepts: isHeaderToken,
};

/** Whether a key can be sent in a header. */
export function isHeaderToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

export const contact: Form = {
  words: 'an e-mail address or a URL, in ASCII',
  example: 'crawler@example.com',
  accepts: (text) => isHeaderToken(text) && (/^[^@\s]+@[^@\s]+$/.test(text) || /^https?:\/\/./.test(text)),
};

export const postgresUrl: Form = {
  words: 'a URL that begins with postgres://',
  example: 'postgres://quarry@db.internal/quarry',
  accepts: (text) => /^postgres(ql)?:\/\/./.test(text),
};

export const s3Name: Form = {
  words: 'letters, digits, dots, hyphens and underscores',
  example: 'eu-central-1',
  accepts: (text) => /^[A-Za-z0-9._-]{1,255}$/.test(text),
};

export const ocrLanguage: Form = {
  words: 'a language as Tesseract names it',
  example: 'eng',
  accepts: (text) => /^[A-Za-z][A-Za-z0-9_]{1,40}$/.test(text),
};

export function nameOf(names: readonly string[]): Form {
  return { words: `one of ${names.join(', ')}`, example: names[0] ?? '', accepts: (text) => names.includes(text) };
}
