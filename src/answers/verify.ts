import { hash } from 'node:crypto';
import type { Static } from 'typebox';
import { type Sentence, splitSentences } from '../content/quotes/sentences.ts';
import { iso } from '../http/route/present.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { signingKeys } from '../ledger/keys.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId } from '../tenancy/references.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { withBoxes } from './boxes.ts';
import { checkQuotes, type FoundQuote, type NamedVersions, presentPlaces } from './citations.ts';
import { quoteLimits, type verifySchema } from './schema.ts';
import { sentenceStatusOf } from './sentence-status.ts';
import { type SignedStatement, signStatement } from './statement.ts';

type VerifyDeps = { knowledge: Knowledge; secrets: Secrets; clock: Clock };

/** Checks the quotes of a text from anywhere, and signs what it finds. */
export async function verifyCitations(
  { knowledge, secrets, clock }: VerifyDeps,
  caller: Caller,
  input: Static<typeof verifySchema>,
): Promise<SignedStatement> {
  const { text, sentences, quotes } = readQuotes(input);
  const { documents, sources, agent } = input;
  if (documents !== undefined && (sources ?? agent) !== undefined)
    throw invalidField('documents', 'cannot be given with sources or agent');
  if (sources !== undefined && agent !== undefined) throw invalidField('agent', 'cannot be given with sources');
  const found = await checkQuotes(
    knowledge,
    caller,
    quotes.map((quote) => quote.text),
    { documents, sources, agent, versions: readVersions(input) },
  );
  const [key] = signingKeys(secrets);
  if (key === undefined) throw new Error('There is no key to sign with.');
  const placed: StatedQuote[] = [];
  for (const [at, quote] of quotes.entries())
    placed.push({ ...quote, ...(await presentPlaces(found[at] ?? { status: 'not_found' })) });
  return signStatement(key, {
    app: formatId('app', caller.appId),
    sandbox: formatId('sandbox', caller.sandboxId),
    verified_at: iso(clock.now()),
    ...(text === undefined ? {} : { text_digest: hash('sha256', text) }),
    quotes: input.boxes ? await withBoxes(knowledge, caller, placed) : placed,
    ...(sentences && { sentences: presentSentences(sentences, found, documents?.length ?? 0) }),
  });
}

/** The versions that the request names, by the UUIDs of their documents. */
function readVersions({ documents = [], versions, boxes }: Static<typeof verifySchema>): NamedVersions | undefined {
  if (versions === undefined) return undefined;
  if (boxes === true) throw invalidField('boxes', 'cannot be given with versions');
  const named = new Set(documents.map((text) => fieldId('document', 'documents', text)));
  const found = new Map<string, { number: number; field: string }>();
  for (const [index, { document, version }] of versions.entries()) {
    const field = `versions.${index}.document`;
    const id = fieldId('document', field, document);
    if (!named.has(id)) throw invalidField(field, 'is not one of documents');
    if (found.has(id)) throw invalidField(field, 'is named twice');
    found.set(id, { number: version, field: `versions.${index}.version` });
  }
  return found;
}

type StatedQuote = SignedStatement['statement']['quotes'][number];
type Quote = { text: string; start?: number; end?: number };

function readQuotes({ text, quotes }: Static<typeof verifySchema>): {
  text?: string;
  sentences?: Sentence[];
  quotes: Quote[];
} {
  if ((text === undefined) === (quotes === undefined)) {
    const fields = ['text', 'quotes'].map((field) => ({
      field,
      message: 'exactly one of text and quotes is required',
    }));
    throw new AppError('invalid_parameters', 'text, quotes: exactly one of the two is required', { fields });
  }
  if (text === undefined) return { quotes: (quotes ?? []).map((each) => ({ text: each })) };
  const sentences = splitSentences(text);
  const found = sentences.flatMap((sentence) => sentence.quotes);
  if (found.length > quoteLimits.quotesMax) throw invalidField('text', `has more than ${quoteLimits.quotesMax} quotes`);
  return { text, sentences, quotes: found };
}

function presentSentences(sentences: readonly Sentence[], found: readonly FoundQuote[], documents: number) {
  let at = 0;
  return sentences.map(({ start, end, quotes, citations }) => {
    const own = found.slice(at, at + quotes.length);
    at += quotes.length;
    const isCited = citations.some((number) => number >= 1 && number <= documents);
    return { start, end, status: sentenceStatusOf(own, isCited) };
  });
}
