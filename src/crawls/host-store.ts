import type { Db } from '../db/database.ts';
import { sweepRowsOfNoApp } from '../db/delete-batch.ts';
import {
  claimShare,
  type HostClaim,
  type HostLedger,
  type HostShares,
  liveShares,
  type ShareGrant,
} from './host-shares.ts';

/** The ledger that all processes of a database share. `process` is the name of this process. */
export function createHostLedger(db: Db, process: string): HostLedger {
  return {
    claim: (claims) => claimHosts(db, process, claims),
    takeTurn: (host, pauseMs) => takeTurn(db, host, pauseMs),
  };
}

/** One short transaction, however many hosts there are. */
async function claimHosts(db: Db, process: string, claims: HostClaim[]): Promise<Map<string, ShareGrant>> {
  // Every process locks the rows in the same order.
  const sorted = claims.toSorted((one, other) => (one.host < other.host ? -1 : 1));
  const grants = await db.begin(async (tx) => {
    const rows = await tx<{ host: string; shares: HostShares; nowMs: number }[]>`
      insert into crawl_host_shares as held (host)
      select host from unnest(${sorted.map(({ host }) => host)}::text[]) with ordinality as given (host, place) order by place
      on conflict (host) do update set host = held.host
      returning host, shares, (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`;
    const found = new Map(rows.map((row) => [row.host, row]));
    const granted = new Map<string, ShareGrant>();
    const updates = sorted.flatMap(({ host, claim }) => {
      const row = found.get(host);
      if (row === undefined) return [];
      const shares = liveShares(row.shares, row.nowMs);
      if (claim === undefined) delete shares[process];
      else {
        const { share, ...grant } = claimShare(shares, process, claim, row.nowMs);
        shares[process] = share;
        granted.set(host, grant);
      }
      const untilMs = Math.max(row.nowMs, ...Object.values(shares).map((share) => share.untilMs));
      return [{ host, shares: JSON.stringify(shares), untilMs }];
    });
    await tx`
      update crawl_host_shares set shares = given.shares, used_until = greatest(next_at, to_timestamp(given.until_ms / 1000))
      from unnest(${updates.map(({ host }) => host)}::text[], ${updates.map(({ shares }) => shares)}::text[]::jsonb[],
        ${updates.map(({ untilMs }) => untilMs)}::float8[]) as given (host, shares, until_ms)
      where crawl_host_shares.host = given.host`;
    return granted;
  });
  if (grants.size < claims.length) await deleteUnusedHosts(db);
  return grants;
}

async function takeTurn(db: Db, host: string, pauseMs: number): Promise<number> {
  const pause = db`${pauseMs} * interval '1 millisecond'`;
  const [row] = await db<[{ waitMs: number }]>`
    insert into crawl_host_shares as held (host, next_at, used_until)
    values (${host}, clock_timestamp() + ${pause}, clock_timestamp() + ${pause})
    on conflict (host) do update set next_at = greatest(held.next_at, clock_timestamp()) + ${pause},
      used_until = greatest(held.used_until, held.next_at + ${pause}, clock_timestamp() + ${pause})
    returning (extract(epoch from next_at - ${pause} - clock_timestamp()) * 1000)::float8 as wait_ms`;
  return Math.max(0, row.waitMs);
}

async function deleteUnusedHosts(db: Db): Promise<void> {
  await sweepRowsOfNoApp(db, { table: 'crawl_host_shares', where: db`t.used_until < clock_timestamp()` });
}
