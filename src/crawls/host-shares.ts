/** One process's share of a host. Times are in milliseconds of the database's clock. */
type Share = {
  /** The number of requests that the process may have active, or still has. */
  slots: number;
  wanted: number;
  slotsMax: number;
  apps: AppCounts;
  /** When the process got its first slot, or started to wait for one. */
  sinceMs: number;
  /** The share counts until then, unless the process renews it. */
  untilMs: number;
};

/** The shares of a host, by process name. */
export type HostShares = Record<string, Share>;

/** The number of active requests of each app that has active or waiting requests. */
export type AppCounts = Record<string, number>;

/** What a process asks for. `slotsMax` is the host's limit for all processes together. */
type Claim = { inUse: number; wanted: number; slotsMax: number; apps: AppCounts };

export type ShareGrant = {
  /** The number of requests that the process may have active. */
  allowed: number;
  /** The number that other processes count for this one. It falls as requests end. */
  held: number;
  /** Whether other processes have a share. */
  isShared: boolean;
  /** For each app of the claim: its active requests in other processes, and how many processes have requests of it. */
  elsewhere: Record<string, { running: number; processes: number }>;
};

/** A claim on a host. Undefined: the process has finished with the host. */
export type HostClaim = { host: string; claim: Claim | undefined };

/** The state of hosts that all processes share, as used by one process. */
export type HostLedger = {
  /** Creates, renews and releases the process's shares. Returns its share of each host. */
  claim(claims: HostClaim[]): Promise<Map<string, ShareGrant>>;
  /**
   * Takes the next turn at a host that requires a pause between requests. Returns how long to wait for it, in
   * milliseconds.
   */
  takeTurn(host: string, pauseMs: number): Promise<number>;
};

/** A share is free this long after its process last renewed it. */
export const leaseMs = 5_000;
/** If there are more processes than slots, a process of average weight keeps its slot this long. */
const sliceMs = 1_000;

/** The shares that have not expired. */
export function liveShares(shares: HostShares, nowMs: number): HostShares {
  return Object.fromEntries(Object.entries(shares).filter(([, share]) => share.untilMs > nowMs));
}

/**
 * The share of `process` among the live ones: what it wants, as far as that is free, but at most a fair part plus
 * what the others do not want. An app gets the same part whether it uses one process or several. The last free slot
 * is reserved for an app that has none in any process.
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
  const elsewhere = Object.fromEntries(
    Object.keys(claim.apps).map((app) => [
      app,
      { running: sum(({ apps }) => apps[app] ?? 0), processes: 1 + sum(({ apps }) => (app in apps ? 1 : 0)) },
    ]),
  );
  const hasNone = Object.entries(claim.apps).some(([app, running]) => running + (elsewhere[app]?.running ?? 0) === 0);
  const hostMax = Math.min(claim.slotsMax, ...others.map(([, share]) => share.slotsMax));
  const slotsMax = others.length === 0 || hasNone ? hostMax : Math.max(1, hostMax - 1);

  const fair = fairPart({ ...shares, [process]: { ...before, apps: claim.apps } }, process, slotsMax, nowMs);
  const free = slotsMax - sum((share) => share.slots);
  const unwanted = slotsMax - sum((share) => share.wanted);
  const allowed = Math.max(0, Math.min(claim.wanted, free, Math.max(fair, unwanted)));

  const held = Math.max(claim.inUse, allowed);
  const sinceMs = held > 0 === before.slots > 0 ? before.sinceMs : nowMs;
  const share = { ...claim, slots: held, sinceMs, untilMs: nowMs + leaseMs };
  return { allowed, held, isShared: others.length > 0, elsewhere, share };
}

/** Divides the slots by the weight of the processes. The remainder goes to those whose turn comes first. */
function fairPart(shares: HostShares, process: string, slots: number, nowMs: number): number {
  const weights = weighProcesses(shares);
  const mean = Object.values(weights).reduce((all, weight) => all + weight, 0) / Object.keys(shares).length || 1;
  const turns = Object.entries(shares)
    .map(([name, share]) => {
      const weight = (weights[name] ?? 0) / mean;
      const isRecent = nowMs - share.sinceMs < sliceMs * weight;
      const part = Math.floor((slots / Object.keys(shares).length) * weight + rounding);
      return { name, part, rank: share.slots === 0 ? 1 : isRecent ? 0 : 2, sinceMs: share.sinceMs };
    })
    .sort((one, other) => one.rank - other.rank || one.sinceMs - other.sinceMs || (one.name < other.name ? -1 : 1));
  const left = slots - turns.reduce((all, { part }) => all + part, 0);
  const place = turns.findIndex(({ name }) => name === process);
  return (turns[place]?.part ?? 0) + (place < left ? 1 : 0);
}

const rounding = 1e-9;

/** Each app weighs one, divided among the processes that have requests of it. */
function weighProcesses(shares: HostShares): Record<string, number> {
  const processes: Record<string, number> = {};
  for (const { apps } of Object.values(shares))
    for (const app of Object.keys(apps)) processes[app] = (processes[app] ?? 0) + 1;
  const weigh = (apps: AppCounts): number => Object.keys(apps).reduce((sum, app) => sum + 1 / (processes[app] ?? 1), 0);
  return Object.fromEntries(Object.entries(shares).map(([name, { apps }]) => [name, weigh(apps)]));
}
