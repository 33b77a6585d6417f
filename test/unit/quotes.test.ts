import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QuoteCheck } from '../../src/content/quotes/check.ts';
import { splitSentences } from '../../src/content/quotes/sentences.ts';
import { inShortTurns, speedTest, startWatch } from '../support/speed.ts';

const page = `# Returns

Goods may be returned within **thirty days** of purchase, unless they were “made to order”. This is impossible to
avoid. The infor-
mation is well-
known — and costs $5.50, not 5%.

| Item | Price |
|:-----|------:|
| Blue chair | 20 EUR |

## Shipping

Parcels leave on the next working day. We can't promise more than that. Use \`snake_case\` names, and 2*3 boxes.
<!-- page 3 -->
The ﬁnal office closes at 17:30. 返品は購入から三十日以内に限ります。
`;

async function check(text: string, ...quotes: string[]) {
  const check = await QuoteCheck.of<string>(quotes);
  await check.add('page', text);
  return check.results();
}

const statusOf = async (quote: string, text = page) => (await check(text, quote))[0]?.status;

test('a quote that differs in layout and typography alone is normalised', async () => {
  for (const [quote, status] of [
    ['Goods may be returned within **thirty days** of purchase', 'exact'],
    ["We can't promise more than that.", 'exact'],
    ['returned within thirty days of purchase', 'normalised'],
    ['unless they were "made to order"', 'normalised'],
    ['impossible to avoid. The information is', 'normalised'],
    ['information is well-known - and costs $5.50', 'normalised'],
    ['Blue chair 20 EUR', 'normalised'],
    ['We can’t   promise\nmore', 'normalised'],
    ['and 2*3 boxes. The final office closes', 'normalised'],
    ['Use snake_case names', 'normalised'],
    ['購入から三十日以内', 'exact'],
    ['購入から四十日以内', 'altered'],
    ['返品は購入から三十日以内に限ります', 'exact'],
  ] as const)
    assert.equal(await statusOf(quote), status, quote);
});

test('no word, number or case may differ, and none may be cut', async () => {
  for (const quote of [
    'returned within forty days of purchase',
    'goods may be returned within thirty days',
    'possible to avoid. The information',
    'next working day. We can',
    'well-known and costs $5',
    'working day. We can promise more than that',
    'Use snakecase names, and',
    'snake_case names, and 23 boxes',
    'office closes at 17',
    'and costs $5.50, not 5',
  ])
    assert.match((await statusOf(quote)) ?? '', /^(altered|not_found)$/, quote);
});

test('the parts of an elided quote stand in order under one heading, with three words each', async () => {
  assert.equal(await statusOf('Goods may be returned […] made to order'), 'elided');
  assert.equal(await statusOf('made to order ... Goods may be returned'), 'not_found');
  assert.equal(await statusOf('Goods may be returned … on the next working day'), 'not_found');
  assert.notEqual(await statusOf('Goods may ... be returned within thirty days'), 'elided');
  assert.equal(await statusOf('thirty days'), 'too_short');
});

test('dashes count wherever they stand in a long quote, except at the ends of lines', async () => {
  const { below, pick } = seeded(7);
  for (let round = 0; round < 200; round++) {
    const said = Array.from({ length: 3 + below(90) }, () => pick(['a', 'a-b', 'well-known', 'one']));
    const text = `Before ${said.join(' ')} after`;
    assert.match((await statusOf(said.join(' '), text)) ?? '', /exact|normalised/);
    const [at, dashed] = [said.findIndex((word) => word.includes('-')), pick(['ab', 'a-\nb'])];
    if (at < 0) continue;
    const changed = said.with(at, said[at]?.replace(/(\w+)-(\w+)/, dashed === 'ab' ? '$1$2' : '$1-\n$2') ?? '');
    const status = await statusOf(changed.join(' '), text);
    assert.match(status ?? '', dashed === 'ab' ? /altered|not_found/ : /normalised/, changed.join(' '));
    const parts = [changed.slice(0, 3), changed.slice(3)].map((part) => part.join(' '));
    if (said.length < 6 || at < 3 || dashed === 'ab') continue;
    assert.match((await statusOf(parts.join(' … '), text)) ?? '', /elided/);
  }
});

test('an altered quote has its difference and its place', async () => {
  const [altered] = await check(page, 'We can promise more than that.');
  assert.equal(altered?.status, 'altered');
  assert.deepEqual(altered?.difference, [
    { type: 'same', text: 'We' },
    { type: 'only_in_quote', text: 'can' },
    { type: 'only_in_source', text: "can't" },
    { type: 'same', text: 'promise more than that.' },
  ]);
  const [range] = altered?.place?.ranges ?? [];
  assert.equal(page.slice(range?.start, range?.end), "We can't promise more than that.");
});

test('a sentence keeps its quotations and citations while it arrives in pieces', () => {
  const text =
    'It says "Goods may be returned. Within days," on page 2 [1]. It costs 5.5 dollars. [2, 3] Then e.g. this.\n\n> A quoted line\n> goes on.\n\nOne “is open\n\nNext.';
  const read = splitSentences(text).map(({ text, quotes, citations }) => [
    text,
    quotes.map((one) => one.text),
    citations,
  ]);
  assert.deepEqual(read, [
    ['It says "Goods may be returned. Within days," on page 2 [1].', ['Goods may be returned. Within days,'], [1]],
    ['It costs 5.5 dollars. [2, 3]', [], [2, 3]],
    ['Then e.g. this.', [], []],
    ['> A quoted line\n> goes on.', ['A quoted line\ngoes on.'], []],
    ['One “is open', ['is open\n\n'], []],
    ['Next.', [], []],
  ]);
});

/** Numbers from 0 to 1 that a seed determines. */
function seeded(seed: number) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return {
    below: (end: number) => Math.floor(next() * end),
    pick: <T>(list: readonly T[]) => list[Math.floor(next() * list.length)] as T,
  };
}

const words =
  "the a of to in is was not never may must goods returned within thirty days purchase order price invoice customer carrier warranty refund well-known re-sign non-refundable impossible possible until before after office winter mountain recreation can't won't company's 12 1,500 3.75 $40 17:30 2019–2024 50%".split(
    ' ',
  );

/** A document in Markdown: paragraphs with emphasis, broken lines, tables and headings. Its `plain` words are in order. */
function writeDocument({ below, pick }: ReturnType<typeof seeded>): { text: string; plain: string[] } {
  const plain: string[] = [];
  let text = '';
  for (let block = 0; block < 12; block++) {
    const own = Array.from(
      { length: 60 + below(60) },
      () => pick(words) + (below(9) === 0 ? pick([',', '.', ';']) : ''),
    );
    const isTable = below(6) === 0;
    text += `## Part ${block}\n\n${isTable ? '| a | b |\n|---|---|\n| ' : ''}`;
    for (const word of own) {
      const broken = !isTable && below(12) === 0 ? word.replace(/^([a-z]{4})([a-z]{3,})/, '$1-\n$2') : word;
      const written = below(15) === 0 ? `**${broken}**` : broken.replace("'", pick(["'", '’']));
      text += `${written}${isTable ? pick([' ', ' | ']) : pick([' ', ' ', ' ', '\n', '  '])}`;
    }
    text += isTable ? '|\n\n' : '\n\n';
    plain.push(`Part`, `${block}`, ...own);
  }
  return { text, plain };
}

/** What a writer changes without a change of meaning. */
function retype(quote: string, { below, pick }: ReturnType<typeof seeded>): string {
  const typed = quote.replaceAll("'", pick(["'", '’'])).replaceAll('–', pick(['–', '-', '‑']));
  return typed
    .split(' ')
    .reduce((all, word) => `${all}${pick([' ', ' ', '\n', '  ', '\u00a0'])}${below(20) === 0 ? `*${word}*` : word}`);
}

/** Changes a word, a number or the order. */
function alter(quote: string[], { below, pick }: ReturnType<typeof seeded>): string[] {
  const at = below(quote.length);
  const word = quote[at] ?? '';
  const changed: (() => string[])[] = [
    () => quote.with(at, pick(words)),
    () => quote.toSpliced(at, 1),
    () => quote.toSpliced(at, 0, pick(words)),
    () =>
      quote.with(
        at,
        word.replace(/\d/, (digit) => String((Number(digit) + 1) % 10)),
      ),
    () => quote.with(at, word.charAt(0).toUpperCase() + word.slice(1)),
    () => quote.with(at, word.replace('-', '')),
    () => quote.with(0, (quote[0] ?? '').slice(1)),
    () => quote.with(-1, (quote.at(-1) ?? '').slice(0, -1)),
    () => (at + 1 < quote.length ? quote.with(at, quote[at + 1] ?? '').with(at + 1, word) : quote.toSpliced(at, 1)),
  ];
  return pick(changed)();
}

const plainOf = (text: string) => text.replaceAll('’', "'").replaceAll('–', '-');

test('0 of 2,000 altered quotes pass, and at least 99 % of 2,000 true ones do', async (context) => {
  const random = seeded(20_260);
  const counts = { trueFound: 0, alteredFound: 0, alteredNamed: 0 };
  for (let round = 0; round < 20; round++) {
    const { text, plain } = writeDocument(random);
    const all = ` ${plainOf(plain.join(' '))} `;
    const truthful: string[] = [];
    const altered: string[] = [];
    while (truthful.length < 100 || altered.length < 100) {
      const from = random.below(plain.length - 40);
      const own = plain.slice(from, from + 5 + random.below(30));
      if (own.some((word) => word === 'Part')) continue;
      if (truthful.length < 100) truthful.push(retype(own.join(' '), random));
      const other = alter(own, random);
      const said = plainOf(other.join(' '))
        .trim()
        .replace(/^[,.;] /, '');
      // A word more or less at the ends, and punctuation at the end, may leave what the document says.
      const isSaid = all.includes(` ${said} `) || [',', '.', ';'].some((mark) => all.includes(` ${said}${mark} `));
      if (altered.length < 100 && !isSaid) altered.push(other.join(' '));
    }
    const passes = ({ status }: { status: string }) => status === 'exact' || status === 'normalised';
    counts.trueFound += (await check(text, ...truthful)).filter(passes).length;
    const found = await check(text, ...altered);
    counts.alteredFound += found.filter(passes).length;
    counts.alteredNamed += found.filter(({ status }) => status === 'altered').length;
  }
  context.diagnostic(JSON.stringify(counts));
  assert.equal(counts.alteredFound, 0);
  assert.ok(counts.trueFound >= 1_980, `${counts.trueFound} of 2,000 true quotes were found`);
});

speedTest('the time grows with the text alone, also for text that repeats itself', async () => {
  for (const [text, quotes] of [
    ['a ', Array.from({ length: 100 }, (_, n) => `${'a '.repeat(100 + n)}b c`)],
    ['a-', [`${'a-'.repeat(400)}b c d`, `${'a-'.repeat(300)}a-a a b`]],
    ['x ', [Array(500).fill('x x x').join('...')]],
    [' ', [`${' '.repeat(20_000)}a b c ...${' '.repeat(20_000)}`]],
  ] as const) {
    const time = async (times: number) => {
      const watch = startWatch();
      await check(text.repeat(times), ...quotes);
      return watch.passedMs();
    };
    await time(50_000);
    const [short, long] = [await time(200_000), await time(800_000)];
    assert.ok(
      long < 12 * Math.max(short, 50),
      `${JSON.stringify(text)}: ${short} ms, then ${long} ms for four times the text`,
    );
  }
});

speedTest('quotes of the greatest size, in texts of the greatest size, let other work run', async () => {
  const words = 'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron'.split(' ');
  let seed = 1;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const prose = (length: number) => {
    const said = Array.from({ length: length / 5 }, () => words[Math.floor(random() * words.length)]);
    return said.join(' ').slice(0, length);
  };
  const fifty = (quote: () => string) => Array.from({ length: 50 }, quote);
  for (const [name, quotes, text] of [
    ['prose', fifty(() => prose(10_000)), prose(1_000_000)],
    ['one letter', fifty(() => 'a '.repeat(5_000)), 'a '.repeat(500_000)],
    ['parts', fifty(() => Array(500).fill('a a a').join(' … ')), 'a '.repeat(500_000)],
    ['compared', fifty(() => prose(2_200)), prose(1_000_000)],
    ['dashes', fifty(() => 'a-\nb '.repeat(2_000)), 'a-\nb '.repeat(200_000)],
    ['parts with dashes', fifty(() => Array(2).fill('a-\nb '.repeat(900)).join(' … ')), 'a-\nb '.repeat(200_000)],
  ] as const) {
    // The first time also compiles the code.
    await check(text, ...quotes);
    await inShortTurns(50, name, () => check(text, ...quotes));
  }
});
