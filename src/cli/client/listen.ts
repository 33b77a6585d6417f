import { existsSync, readFileSync } from 'node:fs';
import { systemClock } from '../../lib/clock.ts';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { writePrivateFile } from '../../lib/private-file.ts';
import { generateWebhookSecret, isWebhookSecret, signedHeaders } from '../../tenancy/signed-messages.ts';
import { ApiError, UsageError } from '../errors.ts';
import { follow } from './follow.ts';
import { jsonLine, type Session } from './session.ts';

const undici = lazyPackage<typeof import('undici')>('undici');

export type ListenOptions = {
  /** The URL that receives the events. */
  forward: string;
  /** Names of events, separated by commas; absent: all. */
  events?: string;
  /** How many of the latest events are sent first. */
  replay?: number;
  /** A file with the secret; it is created if it does not exist. */
  secretFile?: string;
  /** Ends after this many deliveries. */
  limit?: number;
};

type Event = { id: string; type: string; timestamp: string; sequence: number; data: unknown };
type Delivery = { id: string; type: string; sequence: number; status?: number; error?: string; duration_ms: number };

/** As long as the server waits for the receiver of a webhook. */
const responseTimeoutMs = 15_000;

/**
 * `quarry listen`: sends each event to a local program as a webhook would, signed, one after the other. It follows the
 * event stream, so the server needs no way to reach this machine. A failed delivery is reported and not repeated.
 */
export async function listen(session: Session, options: ListenOptions): Promise<number> {
  const target = readTarget(options.forward);
  const wanted = options.events?.split(',').map((name) => name.trim());
  const secret = readOrCreateSecret(options.secretFile);
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  let sent = 0;
  const start = await findStart(session, options.replay ?? 0);
  session.say(`Forwarding events to ${target}. Their signing secret is ${secret}`);
  for await (const { event: kind, data } of follow(session, '/events/stream', {}, undefined, start)) {
    const event = data as Event;
    if (kind !== 'event') continue;
    if (wanted !== undefined && !wanted.includes('*') && !wanted.includes(event.type)) continue;
    const delivery = await deliver(session, target, secret, event);
    await session.print(session.json ? jsonLine(delivery) : describe(event, delivery));
    sent += 1;
    if (sent >= limit) break;
  }
  return 0;
}

/** The id after which the stream has the last events; undefined to begin with the next event. */
async function findStart({ client }: Session, replay: number): Promise<string | undefined> {
  if (replay === 0) return undefined;
  for await (const { id } of client.events('/events/stream')) return String(Math.max(0, Number(id) - replay));
  throw new ApiError(0, 'The server ended the stream of events. Try again.');
}

async function deliver(session: Session, target: string, secret: string, event: Event): Promise<Delivery> {
  const { id, type, timestamp, sequence, data } = event;
  const body = JSON.stringify({ id, type, timestamp, sequence, data });
  const headers = { 'content-type': 'application/json', ...signedHeaders(id, systemClock.now(), body, [secret]) };
  const started = performance.now();
  const ended = () => ({ id, type, sequence, duration_ms: Math.round(performance.now() - started) });
  try {
    const signal = AbortSignal.any([session.signal, AbortSignal.timeout(responseTimeoutMs)]);
    const { statusCode, body: response } = await undici().request(target, { method: 'POST', headers, body, signal });
    await response.dump();
    return { ...ended(), status: statusCode };
  } catch (error) {
    if (session.signal.aborted) throw error;
    const { name, code, message } = error as NodeJS.ErrnoException;
    const reason = name === 'TimeoutError' ? `no response within ${responseTimeoutMs / 1_000} s` : (code ?? message);
    return { ...ended(), error: reason };
  }
}

function describe({ timestamp }: Event, { id, type, status, error, duration_ms: duration }: Delivery): string {
  return `${timestamp}  ${status ?? error}  ${type}  ${id}  ${duration} ms\n`;
}

function readTarget(text: string): string {
  const isUrl = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (!isUrl) throw new UsageError('--forward takes a URL such as http://127.0.0.1:3000/hooks.');
  return text;
}

/** The secret in the file, which is created if it does not exist; without a file, a new one for this run. */
function readOrCreateSecret(file: string | undefined): string {
  if (file !== undefined && existsSync(file)) {
    const secret = readFileSync(file, 'utf8').trim();
    if (!isWebhookSecret(secret)) throw new UsageError(`${file} contains no secret of a webhook (whsec_…).`);
    return secret;
  }
  const secret = generateWebhookSecret();
  if (file !== undefined) writePrivateFile(file, `${secret}\n`);
  return secret;
}
