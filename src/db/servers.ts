import { ConfigError } from '../config/config.ts';

/**
 * The servers that a connection URL names, in libpq's format: `postgres://user@first,second:5433/name`. One of them
 * is the primary. All connections of the process use the server that was last found to be the primary.
 */
export class Servers {
  /** One URL for each server. */
  readonly urls: readonly string[];
  /** Whether a connection must be able to write. */
  readonly needsPrimary: boolean;
  #at = 0;

  constructor(url: string) {
    const { before, hosts, after, attributes } = split(url);
    if (attributes !== undefined && !sessionAttributes.includes(attributes))
      throw new ConfigError([`target_session_attrs of a database must be ${sessionAttributes.join(', ')}`]);
    if (hosts.length > 1 && hosts.includes('')) throw new ConfigError(['A database URL has an empty host name']);
    this.urls = hosts.length > 1 ? hosts.map((host) => before + host + after) : [before + hosts.join() + after];
    this.needsPrimary = attributes === undefined ? hosts.length > 1 : attributes !== 'any';
  }

  get current(): string {
    return this.urls[this.#at] as string;
  }

  /** Makes the next connection try the next server, unless an earlier failure already did. */
  leave(url: string): void {
    if (url === this.current) this.#at = (this.#at + 1) % this.urls.length;
  }
}

const known = new Map<string, Servers>();

/** The servers of this URL, shared by everything that connects to it. */
export function serversOf(url: string): Servers {
  const found = known.get(url) ?? new Servers(url);
  known.set(url, found);
  return found;
}

const sessionAttributes = ['read-write', 'primary', 'any'];

/** `before` ends in `@` or `//`, and `after` begins with the name of the database. */
function split(url: string): { before: string; hosts: string[]; after: string; attributes: string | undefined } {
  const [, before = '', hosts = '', after = ''] = /^(postgres(?:ql)?:\/\/(?:[^/?]*@)?)([^/?]*)(.*)$/s.exec(url) ?? [];
  if (before === '') return { before: url, hosts: [''], after: '', attributes: undefined };
  const attribute = /([?&])target_session_attrs=([^&]*)(&|$)/;
  const [, first, attributes, last] = attribute.exec(after) ?? [];
  const separator = first === '?' && last === '&' ? '?' : (last ?? '');
  return { before, hosts: hosts.split(','), after: after.replace(attribute, separator), attributes };
}
