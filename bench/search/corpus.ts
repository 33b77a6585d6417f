/**
 * Texts for measuring search at size, 250 words in a chunk: words as frequent as in natural language, with subjects that
 * 200 chunks share and words of each chunk's own, in parts with which vectors and their candidates behave as on real
 * pages of the web. The same seed gives the same texts and queries.
 */
export const wordsPerChunk = 250;
const vocabulary = 60_000;
const letters = 'bcdfghjklmnpqrtv';

/** Only consonants: stemming leaves such words unchanged, and no word is an identifier with several parts. */
function spell(rank: number): string {
  let word = '';
  for (let rest = rank; rest > 0; rest = Math.floor(rest / letters.length)) word += letters[rest % letters.length];
  return `xq${word}`;
}

export const words = Array.from({ length: vocabulary }, (_word, rank) => spell(rank));

export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** From 0 to `count` − 1: the r-th with a probability of about 1/r. */
function drawZipf(random: () => number, count: number): number {
  return Math.floor((count + 1) ** random()) - 1;
}

const chunksPerSubject = 200;
const subjectWords = 50;
const ownWords = 20;
/** Words that are in nearly every chunk say nothing about a subject. */
const commonWords = 100;

function wordOfSubject(subject: number, random: () => number): number {
  const place = drawZipf(random, subjectWords);
  const mixed = Math.imul(subject * subjectWords + place + 1, 0x9e3779b1) >>> 0;
  return commonWords + ((mixed ^ (mixed >>> 15)) % (vocabulary - commonWords));
}

/** Draws the ranks of the words of chunks, in turn, into `ranks`. */
export function drawText(ranks: Uint16Array, chunks: number, chunksPerDocument: number, random: () => number): void {
  const subjects = Math.max(1, Math.ceil(chunks / chunksPerSubject));
  let subject = 0;
  for (let chunk = 0; chunk * wordsPerChunk < ranks.length; chunk++) {
    if (chunk % chunksPerDocument === 0) subject = Math.floor(random() * subjects);
    const own = Array.from({ length: ownWords }, () => drawZipf(random, vocabulary));
    for (let i = 0; i < wordsPerChunk; i++) {
      const kind = random();
      const rank =
        kind < 0.3
          ? (own[drawZipf(random, ownWords)] ?? 0)
          : kind < 0.58
            ? wordOfSubject(subject, random)
            : drawZipf(random, vocabulary);
      ranks[chunk * wordsPerChunk + i] = rank;
    }
  }
}

/**
 * Three to eight words: some from a subject, others drawn with their frequency in texts. Most queries contain a very
 * common word.
 */
export function drawQuery(chunks: number, random: () => number): string {
  const subject = Math.floor(random() * Math.max(1, Math.ceil(chunks / chunksPerSubject)));
  const draw = () => (random() < 0.6 ? wordOfSubject(subject, random) : drawZipf(random, vocabulary));
  return Array.from({ length: 3 + Math.floor(random() * 6) }, () => words[draw()] ?? '').join(' ');
}
