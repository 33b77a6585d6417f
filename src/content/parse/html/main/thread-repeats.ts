import { collect, type HtmlElement, hasAncestor, textLength, textOf } from '../tree.ts';
import { detachAll, isLeafBlock, simplify } from './measure.ts';
import { isNamed } from './names.ts';

/**
 * The share of a quote's words, in runs of three, that must already be on the page for the quote to be a repetition.
 */
const repeatedShareMin = 0.8;
const wordsOfRun = 3;
const attributionCharactersMax = 80;

/** Removes what the posts of a thread repeat from each other: quotes, the title of the thread, signatures. */
export function dropRepeats(bodies: HtmlElement[]): void {
  dropRepeatedQuotes(bodies);
  for (const body of bodies)
    detachAll(
      body,
      collect(body, ({ name }) => /^h[1-6]$/.test(name)).filter((heading) => replyTitle.test(textOf(heading))),
    );
  dropSharedLines(bodies);
}

const replyTitle = /^(?:re|aw|sv|odp|rép|rif)\s?:/i;

/** Reduces each quote of an earlier post of the same thread to the line that says whom it quotes. */
function dropRepeatedQuotes(bodies: HtmlElement[]): void {
  const known = new Set<string>();
  for (const body of bodies) {
    for (const quote of collect(body, isQuote)) {
      const runs = runsOf(quote);
      const repeated = runs.filter((run) => known.has(run)).length;
      if (runs.length > 0 && repeated >= runs.length * repeatedShareMin) keepAttribution(quote);
    }
    for (const run of runsOf(body)) known.add(run);
  }
}

const quoteWord = /^(?:quote|quotes|blockquote|quotebox|quotebody|quotecontent|bbquote|quoted)$/;

function isQuote(element: HtmlElement): boolean {
  return element.name === 'blockquote' || isNamed(element, quoteWord);
}

const attributionWord = /^(?:title|cite|citation|attribution|quotetitle|author|by)$/;

function keepAttribution(quote: HtmlElement): void {
  const [line] = collect(
    quote,
    (at) =>
      (at.name === 'cite' || isNamed(at, attributionWord)) &&
      textLength(at) > 0 &&
      textLength(at) <= attributionCharactersMax,
  );
  quote.children = line === undefined ? [] : [line];
  if (line !== undefined) line.parent = quote;
}

function runsOf(element: HtmlElement): string[] {
  const words = simplify(textOf(element)).split(' ');
  return words.slice(wordsOfRun - 1).map((_word, at) => words.slice(at, at + wordsOfRun).join(' '));
}

const sharingPostsMin = 3;
const charactersOfSharedMin = 20;

/** A line that several posts share word for word is a signature or a notice of the forum. Code may be the same command. */
function dropSharedLines(bodies: HtmlElement[]): void {
  const posts = new Map<string, number>();
  const linesOf = bodies.map((body) => collect(body, isLine).map((line) => ({ line, text: textOf(line) })));
  for (const lines of linesOf)
    for (const text of new Set(lines.map((one) => one.text))) posts.set(text, (posts.get(text) ?? 0) + 1);
  for (const [at, body] of bodies.entries()) {
    const shared = (linesOf[at] ?? []).filter(
      ({ text }) => text.length >= charactersOfSharedMin && (posts.get(text) ?? 0) >= sharingPostsMin,
    );
    detachAll(
      body,
      shared.map(({ line }) => line),
    );
  }
}

function isLine(element: HtmlElement): boolean {
  return isLeafBlock(element) && element.name !== 'pre' && !hasAncestor(element, ({ name }) => name === 'pre');
}
