/** One process's share of a host. Times are in milliseconds of the database's clock. */
type Share = {
  /** Requests that the process may have active, or still has. */
  slots: number;
  wanted: number;
  slotsMax: number;
  /** When it got its first slot, or started to wait for one. */
  sinceMs: number;
  /** It counts until then unless the process renews it. */
  untilMs: number;
};

/** The shares of a host, by the name of their process. */
export type HostShares = Record<string, Share>;

/** The claim of a process. `slotsMax` is the host's limit for all processes together. */
type Claim = { inUse: number; wanted: number; slotsMax: number };

/** `allowed`: requests that the process may have active. `held`: what others count for it; it falls as requests end. */
export type ShareGrant = { allowed: number; held: number };

/** A claim on a host, or none: the process has finished with it. */
export type HostClaim = { host: string; claim: Claim | undefined };

/** The state of hosts that all processes share, as one process uses it. */
export type HostLedger = {
  /** Creates, renews and releases the process's shares. Returns its share of each host. */
  claim(claims: HostClaim[]): Promise<Map<string, ShareGrant>>;
  /** Takes the next turn at a host that requires a pause between requests. Returns how long to wait for it. */
  takeTurn(host: string, pauseMs: number): Promise<number>;
};

/** The share of a dead process is free after this time. */
export const leaseMs = 5_000;
/** When there are more processes than slots, a process keeps its slot this long. */
const sliceMs = 1_000;

/** Without the shares that their processes did not renew. */
export function liveShares(shares: HostShares, nowMs: number): HostShares {
  return Object.fromEntries(Object.entries(shares).filter(([, share]) => share.untilMs > nowMs));
}

/**
 * The share of `process` among the live ones: what it wants, as far as it is free, and at most an equal part plus what
 * the others do not want.
 */
export function claimShare(
  shares: HostShares,
  process: string,
  claim: Claim,
  nowMs: number,
): ShareGrant & { share: Share } {
  const before = shares[process] ?? { ...claim, slots: 0, sinceMs: nowMs, untilMs: 0 };
  const others = Object.entries(shares).filter(([name]) => name !== process);
  const sum = (count: (share: Share) => number): number => others.reduce((all, [, share]) => all + count(share), 0);
  const slotsMax = Math.min(claim.slotsMax, ...others.map(([, share]) => share.slotsMax));

  const behind = others.filter(([name, share]) => isBefore([process, before], [name, share], nowMs)).length;
  const fair = Math.floor((slotsMax + behind) / (others.length + 1));
  const free = slotsMax - sum((share) => share.slots);
  const unwanted = slotsMax - sum((share) => share.wanted);
  const allowed = Math.max(0, Math.min(claim.wanted, free, Math.max(fair, unwanted)));

  const held = Math.max(claim.inUse, allowed);
  const sinceMs = held > 0 === before.slots > 0 ? before.sinceMs : nowMs;
  return { allowed, held, share: { ...claim, slots: held, sinceMs, untilMs: nowMs + leaseMs } };
}

/** The remainder goes to those that have just received a slot, then to those that have waited longest. */
function isBefore(one: [string, Share], other: [string, Share], nowMs: number): boolean {
  const rank = ([, { slots, sinceMs }]: [string, Share]): number =>
    slots === 0 ? 1 : nowMs - sinceMs < sliceMs ? 0 : 2;
  const difference = rank(one) - rank(other) || one[1].sinceMs - other[1].sinceMs;
  return difference === 0 ? one[0] < other[0] : difference < 0;
}
