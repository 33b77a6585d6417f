import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Whether it is safe to connect to an untrusted address. This is an allow rule, so unknown ranges are refused.
 * IPv4: everything outside the special-purpose registry (RFC 6890 and later entries). IPv6: global unicast (2000::/3)
 * without its special-purpose blocks. Every form that contains an IPv4 address is refused, because a translator on
 * the path could turn it into a private one.
 */
export function isGloballyRoutable(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  if (parsed.kind() === 'ipv4') return !specialIpv4.some((range) => parsed.match(range));
  return parsed.match(globalUnicast) && !specialIpv6.some((range) => parsed.match(range));
}

/** Parses an address. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // ipaddr.js also reads octal and shortened forms, which the URL check handles. A zone (fe80::1%eth0) exists only
  // for link-local addresses, which are never public.
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  return ipaddr.process(text);
}

const specialIpv4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT, and cloud metadata at some providers
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, and cloud metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '168.63.129.16/32', // a public address that is the host's own service inside one cloud
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map((range) => ipaddr.parseCIDR(range));

const globalUnicast = ipaddr.parseCIDR('2000::/3');

/**
 * Ranges inside 2000::/3. Those outside of it (::/96, ::ffff:0:0/96, 64:ff9b::/96, 64:ff9b:1::/48, fc00::/7 …) are
 * refused before.
 */
const specialIpv6 = [
  '2001::/23', // IETF protocol assignments: Teredo, benchmarking, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // the former 6bone
  '3fff::/20', // documentation
].map((range) => ipaddr.parseCIDR(range));
