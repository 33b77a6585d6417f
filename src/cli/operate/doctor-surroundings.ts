import { readFileSync } from 'node:fs';
import { type Config, runsJobs } from '../../config/config.ts';
import { isLoopback } from '../../config/loopback.ts';
import { openRenderer } from '../../content/browser/renderer.ts';
import { createFetcher } from '../../content/fetch/guarded-fetch.ts';
import { findGit } from '../../content/git/repository.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { AddOnMissing } from '../../lib/add-ons.ts';
import { createLogger } from '../../lib/log.ts';
import { createExporter } from '../../tracing/start.ts';
import { countOf } from '../count.ts';

/*
 * Checks of what surrounds a server and is often misconfigured: system limits, database connections, poolers, replicas,
 * the proxy in front, the trace collector and the browser.
 */
export type CheckResult = { level: 'ok' | 'warn' | 'fail'; message: string; fix?: string };

const openFilesMin = 4_096;
/** Connections of a process outside its pool: events, session locks and the job queue (docs/scaling.md). */
const directConnections = 4;
const jobConnections = 6;
const replicaLagWarnSeconds = 30;
const publicUrlTimeoutMs = 5_000;

/** Checks the limit of open files, which limits connections and event streams. */
export function checkOpenFiles(limits = readLimits()): CheckResult {
  const [, soft] = /^Max open files\s+(\S+)/m.exec(limits ?? '') ?? [];
  if (soft === undefined) return { level: 'ok', message: 'the limit of open files is not known on this system' };
  const message = `${soft} files may be open`;
  if (soft === 'unlimited' || Number(soft) >= openFilesMin) return { level: 'ok', message };
  const fix = `Each connection and event stream is an open file: set \`ulimit -n\` or LimitNOFILE to ${openFilesMin} or more.`;
  return { level: 'warn', message, fix };
}

function readLimits(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
}

/** Checks that the database has enough connections for a process with these settings. */
export async function checkConnections(db: Database, config: Config): Promise<CheckResult> {
  const [row] = await db<{ allowed: number; used: number; own: number }[]>`
    select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        as allowed,
      count(*) filter (where application_name not like 'quarry%')::integer as used,
      count(*) filter (where application_name like 'quarry%' and application_name <> 'quarry-cli')::integer as own
    from pg_stat_activity where backend_type = 'client backend'`;
  const { allowed, used, own } = row ?? { allowed: 0, used: 0, own: 0 };
  const needed = config.databasePoolSize + directConnections + (runsJobs(config) ? jobConnections : 0);
  const message = `max_connections leaves ${allowed}; other programs use ${used}, Quarry ${own}; a process needs up to ${needed}`;
  if (Math.max(needed, own) + used <= allowed) return { level: 'ok', message };
  return { level: 'fail', message, fix: 'Raise max_connections, or lower QUARRY_DB_POOL. See docs/scaling.md.' };
}

/** Checks that what the database acknowledges survives a power cut of its machine. */
export async function checkDurability(db: Database): Promise<CheckResult> {
  const off = await db<{ name: string }[]>`
    select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off'
    order by name`;
  if (off.length === 0) return { level: 'ok', message: 'what it acknowledges is on disk' };
  const names = off.map(({ name }) => name).join(', ');
  const message = `a power cut loses what was acknowledged: ${names} ${off.length === 1 ? 'is' : 'are'} off`;
  return { level: 'warn', message, fix: `Turn on ${names} in PostgreSQL.` };
}

/** Checks that no transaction that writes is forgotten: new event streams wait for it, and nothing is cleaned up. */
export async function checkTransactions(db: Database, secondsMax = 600): Promise<CheckResult[]> {
  const [oldest] = await db<{ process: number; name: string; seconds: number }[]>`
    select pid as process, application_name as name, extract(epoch from clock_timestamp() - xact_start)::float8 as seconds
    from pg_stat_activity
    where datname = current_database() and backend_xid is not null and application_name not like 'quarry-move%'
    order by xact_start limit 1`;
  if (oldest === undefined || oldest.seconds <= secondsMax) return [];
  const message = `${oldest.name || 'a program'} has kept a transaction open for ${Math.round(oldest.seconds / 60)} minutes`;
  const fix = `New event streams wait for it. If it is not needed: select pg_terminate_backend(${oldest.process}).`;
  return [{ level: 'warn', message, fix }];
}

/** Checks whether DATABASE_URL is a pooler in transaction mode, and that the other settings match. */
export async function checkPooler(config: Config): Promise<CheckResult[]> {
  if (config.databaseUrl === undefined) return [];
  const db = openDatabase(config.databaseUrl, {
    poolSize: 2,
    applicationName: 'quarry-cli',
    prepare: false,
    behindPooler: true,
  });
  try {
    if (!(await sharesConnections(db)))
      return [{ level: 'ok', message: 'DATABASE_URL keeps a session for each connection' }];
  } finally {
    await db.end({ timeout: 5 });
  }
  const message = 'DATABASE_URL is a pooler in transaction mode';
  if (config.databaseDirectUrl === undefined)
    return [
      { level: 'fail', message, fix: 'Set DATABASE_DIRECT_URL to the database itself: events and jobs need sessions.' },
    ];
  if (config.prepare === 'off') return [{ level: 'ok', message: `${message}; DATABASE_DIRECT_URL has the sessions` }];
  const fix = 'If statements fail with "prepared statement does not exist", set QUARRY_PREPARE=off.';
  return [{ level: 'warn', message: `${message}; it must keep prepared statements`, fix }];
}

/**
 * Whether two connections share server processes, as behind a pooler in transaction mode: it gives the process that was
 * freed last to the next transaction, which here belongs to the other connection.
 */
export async function sharesConnections(db: Database): Promise<boolean> {
  const first = await db.reserve();
  const second = await db.reserve();
  const pidOf = async (connection: typeof first) =>
    (await connection<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid;
  try {
    const before = await pidOf(first);
    await second`begin`;
    const other = await pidOf(second);
    const after = await pidOf(first);
    await second`rollback`;
    return before === other || before !== after;
  } finally {
    first.release();
    second.release();
  }
}

/** Checks that the database is the primary, because a server writes, and that its replicas keep up. */
export async function checkReplicas(db: Database): Promise<CheckResult> {
  const [primary] = await db<{ standby: boolean }[]>`select pg_is_in_recovery() as standby`;
  if (primary?.standby)
    return { level: 'fail', message: 'this is a read-only replica', fix: 'Set DATABASE_URL to the primary.' };
  const replicas = await db<{ name: string; seconds: number }[]>`
    select application_name as name, coalesce(extract(epoch from replay_lag), 0)::integer as seconds
    from pg_stat_replication order by replay_lag desc nulls last limit 100`;
  const [slowest] = replicas;
  if (slowest === undefined) return { level: 'ok', message: 'no replica is connected, or this user may not see them' };
  const message = `${countOf(replicas.length, 'replica')}; ${slowest.name} is ${slowest.seconds} s behind`;
  if (slowest.seconds <= replicaLagWarnSeconds) return { level: 'ok', message };
  const fix = 'A failover now would lose what it has not received. Check its load and its network.';
  return { level: 'warn', message, fix };
}

/** Checks that clients reach this installation at QUARRY_PUBLIC_URL, with TLS. */
export async function checkPublicUrl({ publicUrl, host }: Config): Promise<CheckResult[]> {
  if (publicUrl === undefined) {
    if (isLoopback(host)) return [{ level: 'ok', message: 'not set: only this machine reaches the server' }];
    const fix = 'Set QUARRY_PUBLIC_URL to the address that clients use: links to files contain it.';
    return [{ level: 'warn', message: `not set, and the server listens on ${host}`, fix }];
  }
  const { protocol, hostname } = new URL(publicUrl);
  const encrypted: CheckResult =
    protocol === 'https:' || isLoopback(hostname)
      ? { level: 'ok', message: protocol === 'https:' ? 'https' : 'http, for this machine only' }
      : {
          level: 'warn',
          message: `${publicUrl} is not encrypted: anyone on the network path can read keys and contents`,
          fix: 'Put a proxy with TLS in front (deploy/Caddyfile, deploy/nginx.conf) and set QUARRY_PUBLIC_URL to https://….',
        };
  return [encrypted, await checkReachable(publicUrl)];
}

/** Checks whether traces are recorded, and that the collector accepts them. */
export async function checkTracing(config: Config): Promise<CheckResult> {
  if (config.otlpEndpoint === undefined)
    return { level: 'ok', message: 'off; OTEL_EXPORTER_OTLP_ENDPOINT turns it on' };
  const exporter = createExporter(config);
  const result = await new Promise<{ code: number; error?: Error }>((resolve) => exporter.export([], resolve));
  await exporter.shutdown();
  const where = new URL(config.otlpEndpoint).host;
  if (result.code === 0) return { level: 'ok', message: `on; the collector at ${where} accepts traces` };
  const fix = 'Check OTEL_EXPORTER_OTLP_ENDPOINT (OTLP over HTTP, usually port 4318) and OTEL_EXPORTER_OTLP_HEADERS.';
  return { level: 'warn', message: `on, but the collector at ${where} does not accept traces`, fix };
}

async function checkReachable(publicUrl: string): Promise<CheckResult> {
  try {
    const signal = AbortSignal.timeout(publicUrlTimeoutMs);
    const { status } = await fetch(`${publicUrl}/healthz`, { signal, redirect: 'manual' });
    if (status === 200) return { level: 'ok', message: `${publicUrl} leads to a server` };
    const fix = 'The proxy must forward every path unchanged, and respond to none of them itself.';
    return { level: 'warn', message: `${publicUrl}/healthz returns ${status} instead of 200`, fix };
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message : message;
    const fix = 'Check the name, the certificate and the proxy. While no server runs, this is expected.';
    return { level: 'warn', message: `${publicUrl} cannot be reached from here: ${reason}`, fix };
  }
}

/** Checks that the server sees the addresses of clients and not of a proxy: sign-in limits and the audit log use them. */
export function checkProxy({ publicUrl, trustProxy, host }: Config): CheckResult {
  const anyone = trustProxy.find((range) => /\/0$/.test(range) || range === '*');
  if (anyone !== undefined)
    return {
      level: 'warn',
      message: `QUARRY_TRUST_PROXY contains ${anyone}: any client can claim any address`,
      fix: 'Name the addresses of your proxies only.',
    };
  if (trustProxy.length > 0)
    return { level: 'ok', message: `X-Forwarded-* headers of ${trustProxy.join(', ')} are trusted` };
  const isProxied = publicUrl !== undefined && (publicUrl.startsWith('https:') || isLoopback(host));
  if (!isProxied || isLoopback(new URL(publicUrl).hostname))
    return { level: 'ok', message: 'no proxy is expected, and X-Forwarded-* headers are ignored' };
  return {
    level: 'warn',
    message: 'clients come through a proxy, but QUARRY_TRUST_PROXY is not set: all share its address',
    fix: "Set QUARRY_TRUST_PROXY to the proxy's address, or the limits of one address apply to all clients.",
  };
}

/** Checks that pages that need a browser can be rendered. */
export async function checkRenderer(config: Config): Promise<CheckResult> {
  const fetcher = createFetcher();
  const renderer = openRenderer(config, fetcher, createLogger('silent'));
  if (renderer === undefined) return { level: 'ok', message: 'none: pages that need a browser fail as needs_browser' };
  try {
    return { level: 'ok', message: `Chromium ${await renderer.check()} at ${config.renderer}` };
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? ` ${cause.message.split('\n')[0]}` : '';
    if (cause instanceof AddOnMissing) return { level: 'warn', message };
    const fix =
      'Start Chromium as docs/self-hosting.md shows, and check QUARRY_RENDERER and QUARRY_RENDERER_PROXY_HOST.';
    return { level: 'warn', message: `${message}${reason}`, fix };
  } finally {
    await fetcher.close();
  }
}

/** Names the program that sources of the type `git/repository` need. */
export async function checkGit(): Promise<CheckResult> {
  const version = await findGit();
  if (version !== undefined) return { level: 'ok', message: `git ${version}` };
  return { level: 'ok', message: 'none: sources of the type git/repository cannot be pulled' };
}
