import { Connection } from './connection.ts';
import { QuarryError } from './errors.ts';
import type { ClaimedJournal } from './generated/schema.ts';
import { verifyWebhook } from './webhooks.ts';
import { type Claim, Execution } from './workflow-execution.ts';
import { Run, type Workflow } from './workflow-run.ts';

export type ServeOptions = {
  /** The secret of the webhook, `whsec_…`; while it is being replaced, both. */
  secret: string | readonly string[];
  /** The version of your code. Default `1`. */
  codeVersion?: string;
  /** The run is handed back after this time, and the function is woken again. Default 240. */
  seconds?: number;
  /** Where the server is, if not where its messages say. */
  baseUrl?: string;
  /** In place of the runtime's `fetch`. */
  fetch?: typeof fetch;
  /** What kept the function from continuing a run. By default it is ignored: the run is continued later. */
  onError?: (error: unknown) => void;
};

/** What platforms pass beside the request. */
export type ServeContext = { waitUntil?: (work: Promise<unknown>) => void };

/** A run that has work, as the message to the function has it. */
type Offer = {
  automation: string;
  workflow: string;
  lookup_key?: string;
  claim: string;
  lease_until: string;
  url: string;
};

const secondsDefault = 240;
/** The length of the claims of functions. */
const leaseSeconds = 30;

/**
 * A function that a webhook wakes when a run of these workflows has work. It continues the run until that ends, or has to
 * wait. With `waitUntil` of the platform, it responds immediately.
 */
export function serve(
  workflows: readonly Workflow[],
  options: ServeOptions,
): (request: Request, context?: ServeContext) => Promise<Response> {
  const { onError = () => {} } = options;
  return async (request, context = {}) => {
    if (request.method !== 'POST') return respond(405, 'Send the messages of a webhook with POST.');
    const message = await verify(await request.text(), request.headers, options.secret);
    if (message === undefined) return respond(401, 'The message is not signed with the secret of the webhook.');
    if (message.type !== 'automation_run.ready') return respond(200, 'Nothing to do.');
    const offer = message.data as Offer;
    const names = [offer.lookup_key, offer.automation, offer.workflow];
    const found = workflows.find(({ name }) => names.includes(name));
    if (!found) return respond(404, `There is no workflow "${offer.lookup_key ?? offer.workflow}" here.`);
    const work = continueRun(found, offer, options);
    if (context.waitUntil !== undefined) {
      context.waitUntil(work.catch(onError));
      return respond(202, 'The run is being continued.');
    }
    try {
      await work;
      return respond(200, 'Done.');
    } catch (error) {
      onError(error);
      return respond(500, 'The run could not be continued.');
    }
  };
}

async function verify(body: string, headers: Headers, secret: string | readonly string[]) {
  for (const one of typeof secret === 'string' ? [secret] : secret) {
    const message = await verifyWebhook(body, headers, one).catch(() => undefined);
    if (message !== undefined) return message;
  }
  return undefined;
}

/** Continues the run of an offer until it ends or waits, or the time of the function is over. */
async function continueRun(found: Workflow, offer: Offer, options: ServeOptions): Promise<void> {
  const { codeVersion = '1', seconds = secondsDefault } = options;
  const claim = functionClaim(offer, options);
  const stopping = new AbortController();
  const timer = setTimeout(() => stopping.abort(new Error('The time of the function is over.')), seconds * 1_000);
  try {
    const work = await claim.post<ClaimedJournal>('journal', { code_version: codeVersion }, {});
    const execution = new Execution(claim, work, leaseSeconds, stopping.signal);
    await execution.execute((input) => found.body(new Run(execution, ''), input as never));
  } catch (error) {
    // Another one has the run.
    if (!(error instanceof QuarryError && error.code === 'claim_lost')) throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The claim of a function, which is its own credential. */
function functionClaim({ claim, url }: Offer, { baseUrl, fetch: send }: ServeOptions): Claim {
  const at = new URL(url);
  const origin = baseUrl ?? at.href.slice(0, at.href.length - '/api/v1/claimed_run'.length);
  const c = new Connection({ baseUrl: origin, token: claim, fetch: send });
  return { post: (path, body, more) => c.send('POST', `/api/v1/claimed_run/${path}`, body, more) };
}

function respond(status: number, text: string): Response {
  return new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}
