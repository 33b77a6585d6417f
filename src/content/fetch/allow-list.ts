import ipaddr from 'ipaddr.js';
import { parseAddress } from './address.ts';

/**
 * Targets that an operator allows in addition to the public internet: CIDRs, addresses, host names, and `*.name` for
 * every subdomain. A host name allows every address that it resolves to.
 */
export type AllowList = {
  allowsHost(host: string): boolean;
  allowsAddress(address: string): boolean;
};

/** Parses QUARRY_FETCH_ALLOW. Throws a plain Error that names an invalid entry. */
export function parseAllowList(entries: readonly string[]): AllowList {
  const ranges: [ipaddr.IPv4 | ipaddr.IPv6, number][] = [];
  const names = new Set<string>();
  const suffixes: string[] = [];
  for (const raw of entries) {
    const entry = raw.trim().toLowerCase();
    const address = parseAddress(entry.replace(/^\[|\]$/g, ''));
    if (ipaddr.isValidCIDR(entry)) ranges.push(ipaddr.parseCIDR(entry));
    else if (address !== undefined) ranges.push([address, address.kind() === 'ipv4' ? 32 : 128]);
    else if (/^\*\.[a-z0-9_.-]+$/.test(entry)) suffixes.push(entry.slice(1));
    else if (/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(entry)) names.add(entry);
    else throw new Error(`QUARRY_FETCH_ALLOW: "${raw}" is neither a CIDR, an address nor a host name`);
  }
  return {
    allowsHost: (host) => {
      const name = host.toLowerCase().replace(/\.+$/, '');
      return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
    },
    allowsAddress: (text) => {
      const address = parseAddress(text);
      if (address === undefined) return false;
      return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match([network, bits]));
    },
  };
}
