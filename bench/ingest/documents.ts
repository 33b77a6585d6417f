const syllables = ['ba', 'con', 'de', 'fer', 'gra', 'in', 'lo', 'men', 'na', 'per', 'ri', 'so', 'ter', 'u', 'ver'];
const words = Array.from({ length: 20_000 }, (_word, i) => {
  const parts: string[] = [];
  for (let rest = i + 15; rest > 0; rest = Math.floor(rest / 15)) parts.push(syllables[rest % 15] ?? '');
  return parts.join('');
});

/** In English, nearly half of the words of a text are these. They tell the language of a document. */
const functionWords = (
  'the of and to a in is that it was for on are as with his they at be this from have or by one had not but what all ' +
  'were we when your can said there use an each which she do how their if will up other about out many then them these'
).split(' ');
const functionShare = 0.45;

/**
 * About 10 KB of Markdown with headings, paragraphs and lists, the same for the same number. Words are as frequent as in
 * English.
 */
export function createDocument(number: number): string {
  let state = (number + 1) * 2_654_435_761;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const word = () =>
    random() < functionShare
      ? (functionWords[Math.floor(functionWords.length ** random()) - 1] ?? 'the')
      : (words[Math.floor(words.length ** random())] ?? 'word');
  const sentence = () => `${Array.from({ length: 12 }, word).join(' ')}.`;
  const lines = [`# Document ${number}`, ''];
  for (let length = 0; length < 10_240; ) {
    const section = [`## ${word()} ${word()}`, '', Array.from({ length: 6 }, sentence).join(' '), ''];
    section.push(...Array.from({ length: 4 }, () => `- ${sentence()}`), '');
    lines.push(...section);
    length += section.join('\n').length;
  }
  return lines.join('\n').slice(0, 10_240);
}
