import ipaddr from 'ipaddr.js';

/** An IPv4 address, or the /64 of an IPv6 address, which belongs to one subscriber. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}
