import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { handbookPdf } from '../support/handbook-pdf.ts';

type Drawn = Parameters<typeof handbookPdf>[0][number];

const prose = 'The harbour master keeps a record of every ship that enters or leaves, with its tonnage and master.';

function paragraph(y: number, text = prose, rest: Partial<Drawn[number]> = {}): Drawn {
  return Array.from({ length: 4 }, (_unused, row) => ({ text, x: 72, y: y - row * 12, ...rest }));
}

async function headings(pages: Drawn[]): Promise<string[]> {
  const { markdown } = await parseDocument({ bytes: handbookPdf(pages) });
  return markdown.split('\n').filter((line) => line.startsWith('#'));
}

test('a numbered title that opens several chapters is a title, although running heads recur too', async () => {
  const pages = [1, 2, 3, 4].map(
    (chapter): Drawn => [
      { text: 'Handbook of the port', x: 72, y: 765, size: 9 },
      { text: `Page ${chapter}`, x: 500, y: 765, size: 9 },
      { text: `${chapter}.1 Duties of the pilot`, x: 72, y: 720, font: 'bold' },
      ...paragraph(700),
      { text: `${chapter}.1.1`, x: 72, y: 640, font: 'bold' },
      { text: 'Before boarding', x: 110, y: 640, font: 'bold' },
      ...paragraph(620),
    ],
  );
  assert.deepEqual(
    await headings(pages),
    [1, 2, 3, 4].flatMap((chapter) => [`# ${chapter}.1 Duties of the pilot`, `## ${chapter}.1.1 Before boarding`]),
  );
});

test('a running head that names the section of several pages is dropped', async () => {
  const pages = [1, 2, 3, 4].map(
    (page): Drawn => [
      { text: '1.1 Duties of the pilot', x: 72, y: 750, font: 'bold' },
      { text: String(page), x: 500, y: 750 },
      ...paragraph(720),
    ],
  );
  assert.deepEqual(await headings(pages), []);
});

test('lettered and named sections rank below those that they divide', async () => {
  const titles = ['1.1 Arrivals', '(a) By day', 'Section 1.2 Berths', '1.2.1 Who assigns them', 'b) By night'];
  const page = titles.flatMap(
    (text, at): Drawn => [{ text, x: 72, y: 720 - at * 90, font: 'bold' }, ...paragraph(704 - at * 90)],
  );
  assert.deepEqual(await headings([page]), [
    '# 1.1 Arrivals',
    '### (a) By day',
    '# Section 1.2 Berths',
    '## 1.2.1 Who assigns them',
    '### b) By night',
  ]);
});

test('a title without a number has the level of those with one in the same type', async () => {
  const titles = ['1 Port', '1.1 Arrivals', 'Acknowledgements', '2 Sea'];
  const sizes = [18, 14, 14, 18];
  const page = titles.flatMap(
    (text, at): Drawn => [
      { text, x: 72, y: 720 - at * 90, font: 'bold', size: sizes[at] ?? 10 },
      ...paragraph(700 - at * 90),
    ],
  );
  assert.deepEqual(await headings([page]), ['# 1 Port', '## 1.1 Arrivals', '## Acknowledgements', '# 2 Sea']);
});

test('bold titles without numbers that stand only below numbered ones of the same size rank below them', async () => {
  const titles: Drawn = [
    { text: 'I. Berths', x: 72, y: 740, font: 'caps' },
    { text: '1.1 Depth', x: 72, y: 650, font: 'italic' },
    { text: 'Soundings', x: 72, y: 560, font: 'bold' },
    { text: '1.2 Use', x: 72, y: 470, font: 'italic' },
    { text: 'Ships', x: 72, y: 380, font: 'bold' },
    { text: '1.3 Rent', x: 72, y: 290, font: 'italic' },
  ];
  const page = titles.flatMap((title): Drawn => [title, ...paragraph(title.y - 20)]);
  assert.deepEqual(await headings([page]), [
    ...['# I. Berths', '## 1.1 Depth', '### Soundings', '## 1.2 Use', '### Ships', '## 1.3 Rent'],
  ]);
});

test('a title in the type of its text is not part of the paragraph that follows at some distance', async () => {
  const text = 'THE DUTIES OF THE PILOT';
  const page: Drawn = [...paragraph(700), { text, x: 72, y: 640 }, ...paragraph(625), { text, x: 72, y: 560 }];
  const { markdown } = await parseDocument({ bytes: handbookPdf([[...page, ...paragraph(545), ...paragraph(480)]]) });
  assert.deepEqual(
    markdown.split('\n').filter((line) => line.includes(text)),
    [text, text],
  );
});

test('bold words that begin a paragraph and the bold heads of columns are not titles', async () => {
  const bold = 'Uploads of the harbour resume, and those who watch them miss nothing at all, as long as no';
  const columns = (y: number, left: string, right: string, font: 'bold' | 'roman' = 'roman'): Drawn => [
    { text: left, x: 72, y, font },
    { text: right, x: 140, y, font },
  ];
  const page: Drawn = [
    ...paragraph(740),
    { text: bold, x: 72, y: 680, font: 'bold' },
    ...paragraph(668, 'process is left behind that would keep a ship, a berth or a pilot from being assigned again.'),
    ...columns(600, 'Scope', 'Allows', 'bold'),
    ...columns(580, 'pilots', 'whatever a pilot may do before a ship has left the harbour, and what follows from it'),
    ...columns(560, 'masters', 'whatever a master may do while the ship is in the harbour, and what follows from it'),
    ...paragraph(500),
  ];
  assert.deepEqual(await headings([page]), []);
});

test('small capitals on their own line are a title', async () => {
  const page = (first: string): Drawn => [
    ...[
      ['S', 72, 10],
      ['IGNALS AND ', 77.6, 8],
      ['L', 129, 10],
      ['IGHTS', 135.2, 8],
    ].map(([text, x, size]) => ({ text: String(text), x: Number(x), y: 700, size: Number(size) })),
    ...paragraph(680, first),
    ...paragraph(600),
  ];
  assert.deepEqual(await headings([page(prose)]), ['# SIGNALS AND LIGHTS']);
});

test('a title in a font of small capitals is one without a number, too', async () => {
  const page: Drawn = [{ text: 'Berths', x: 72, y: 720, font: 'caps' }, ...paragraph(695), ...paragraph(630)];
  assert.deepEqual(await headings([page]), ['# Berths']);
});

test('capitals in the middle above text are a title, at whatever distance; those of an indented line are not', async () => {
  const pageOf = (x: number): Drawn => [...paragraph(740), { text: 'RULES', x, y: 680 }, ...paragraph(668)];
  assert.deepEqual(await headings([pageOf(255)]), ['# RULES']);
  assert.deepEqual(await headings([pageOf(100)]), []);
});

test('pages from right to left keep bold titles and lose running heads with digits of their own', async () => {
  // Drawn from left to right, so read from the end.
  const line = 'EDCBA IHGF MLKJ QPON UTSR ZYXW EDCBA IHGF MLKJ QPON UTSR';
  const font = 'hebrew' as const;
  const pages = [1, 2, 3, 4].map(
    (page): Drawn => [
      { text: `${page} QPON EDCBA`, x: 400, y: 765, size: 9, font },
      { text: ['CBA', 'FED', 'IHG', 'LKJ'][page - 1] ?? '', x: 500, y: 720, font: 'hebrewBold' },
      ...paragraph(700, line, { x: 160, font }),
      { text: `1${page}`, x: 300, y: 30, font },
    ],
  );
  const { markdown } = await parseDocument({ bytes: handbookPdf(pages) });
  assert.deepEqual(
    markdown.split('\n').filter((text) => text.startsWith('#')),
    ['# אבג', '# דהו', '# זחט', '# יךכ'],
  );
  assert.doesNotMatch(markdown, /[٠-٩]/);
});

test('a title in italics above running text is a heading; a motto, an emphasised line and italic documents have none', async () => {
  const titled = (font: Drawn[number]['font'], title: string): Drawn => [
    ...paragraph(720, prose, font === undefined ? {} : { font }),
    { text: title, x: 72, y: 650, font: 'italic' },
    ...paragraph(625, prose, font === undefined ? {} : { font }),
  ];
  assert.deepEqual(await headings([titled(undefined, 'Lights at night')]), ['# Lights at night']);
  assert.deepEqual(await headings([titled(undefined, 'Keep a lookout at all times!')]), []);
  assert.deepEqual(await headings([titled(undefined, 'and never leave the helm')]), []);
  assert.deepEqual(await headings([titled('italic', 'Lights at night')]), []);
});

test('a line in capitals is a heading, a statement of a query language is not', async () => {
  const pageOf = (line: string): Drawn => [...paragraph(720), { text: line, x: 72, y: 650 }, ...paragraph(625)];
  assert.deepEqual(await headings([pageOf('RULES OF THE HARBOUR')]), ['# RULES OF THE HARBOUR']);
  for (const line of [
    'SELECT NAME FROM SHIPS',
    'DELETE FROM BERTHS WHERE SHIP = NULL',
    'COUNT(SHIPS)',
    'LEFT JOIN BERTHS ON SHIP',
  ])
    assert.deepEqual(await headings([pageOf(line)]), [], line);
});

test('a line in another colour above the text is a title; a link, lines of an address and a grey that is nearly black are not', async () => {
  const colour = '0 0.2 0.4';
  const page: Drawn = [
    { text: 'Arrivals', x: 72, y: 720, colour },
    ...paragraph(700),
    { text: 'Valves', x: 72, y: 630, colour },
    { text: 'See the list.', x: 72, y: 610 },
    { text: 'Written to pilot@example.org', x: 72, y: 580, colour },
    ...paragraph(560),
    { text: 'First line of an address', x: 72, y: 490, colour },
    { text: 'Second line of it', x: 72, y: 470, colour },
    { text: 'Third line of it', x: 72, y: 450, colour },
    { text: 'Nearly black', x: 72, y: 420, colour: '0.05 0.05 0.05' },
    ...paragraph(400),
  ];
  assert.deepEqual(await headings([page]), ['# Arrivals', '# Valves']);
});

test('a line in the small capitals of a browser is a title, in the size of its larger letters', async () => {
  const small = (y: number, words: string[]): Drawn => {
    let x = 72;
    return words.flatMap((word) => {
      const [first, rest] = [word.slice(0, 1), word.slice(1)];
      const start = x;
      x += 10 + rest.length * 4.2 + 3;
      return [
        { text: first, x: start, y, size: 10 },
        { text: rest, x: start + 7, y, size: 7 },
      ];
    });
  };
  const page: Drawn = [...small(720, ['Harbour', 'Duties']), ...paragraph(700), ...paragraph(640)];
  assert.deepEqual(await headings([page]), ['# Harbour Duties']);
});

test('numbered titles in italics or small capitals, as in papers, are titles in the size of the text; items of a list are not', async () => {
  const page: Drawn = [
    { text: 'I. Berths', x: 72, y: 740, font: 'caps' },
    { text: 'A. Depth', x: 72, y: 720, font: 'italic' },
    ...paragraph(700),
    { text: 'B. Use', x: 72, y: 640, font: 'italic' },
    ...paragraph(620),
    { text: 'II. Lights', x: 72, y: 560, font: 'caps' },
    ...paragraph(540),
    { text: 'A. A list in the type of the text', x: 72, y: 480 },
    { text: 'B. has items with numbers', x: 72, y: 462 },
  ];
  assert.deepEqual(await headings([page]), ['# I. Berths', '## A. Depth', '## B. Use', '# II. Lights']);
});

test('authors that are centred below the title of a paper are no title, and the number of a chapter is part of its own', async () => {
  const paper: Drawn = [
    { text: 'A harbour', x: 250, y: 740, size: 18 },
    { text: 'A. Pilot', x: 268, y: 715, size: 12 },
    ...paragraph(680),
    { text: 'Berths', x: 72, y: 620, size: 14 },
    ...paragraph(595),
  ];
  assert.deepEqual(await headings([paper]), ['# A harbour', '## Berths']);
  const chapter: Drawn = [
    { text: 'Chapter 2', x: 72, y: 740, size: 18 },
    { text: 'Berths', x: 72, y: 700, size: 24 },
    ...paragraph(660),
  ];
  assert.deepEqual(await headings([chapter]), ['# Chapter 2 Berths']);
});

test('footnotes are notes, and a paragraph that continues on the next page is one paragraph around them', async () => {
  const small = { x: 72, size: 8 };
  const pages: Drawn[] = [
    [
      ...paragraph(720),
      {
        text: 'Ships that stay longer need a permit.1 It is given by the office, on all days of the week and',
        x: 72,
        y: 660,
      },
      { text: '1The permit is a sheet of paper.', y: 100, ...small },
    ],
    [
      { text: 'in every season, to those that ask for it in time.', x: 72, y: 720 },
      ...paragraph(690),
      { text: 'The digest sha1 is not a reference.', x: 72, y: 620 },
      { text: '1Not a note, because nothing on this page refers to it.', y: 100, ...small },
    ],
  ];
  const { markdown } = await parseDocument({ bytes: handbookPdf(pages) });
  assert.match(
    markdown,
    /need a permit\.\[\^1\] It is given by the office, on all days of the week and in <!-- page 2 --> every season, to those that ask for it in time\.\n\n\[\^1\]: The permit is a sheet of paper\.\n\n/,
  );
  assert.match(markdown, /sha1 is not a reference\.\n\n1Not a note/);
});

test('a running head that repeats a title is dropped, although it is on one page only and low', async () => {
  const pages: Drawn[] = [
    [{ text: '1 Berths', x: 72, y: 640, font: 'bold', size: 12 }, ...paragraph(615)],
    [{ text: '1. Berths', x: 72, y: 640, font: 'caps' }, ...paragraph(615)],
  ];
  const { markdown } = await parseDocument({ bytes: handbookPdf(pages) });
  assert.deepEqual(markdown.match(/^.*Berths.*$/gm), ['# 1 Berths']);
  const [first = [], second = []] = pages;
  const repeated = [first, [...second, { text: 'Berths', x: 72, y: 540 }]];
  const kept = (await parseDocument({ bytes: handbookPdf(repeated) })).markdown;
  assert.equal(kept.match(/Berths/g)?.length, 3, 'a line that the text repeats is no running head');
});

test('lines of a paragraph are one paragraph, although lines of code below are longer than its column', async () => {
  const code = [60, 64, 68, 72, 76, 80, 84].map((length, row): Drawn[number] => {
    const text = `load("${'a'.repeat(length)}")`;
    return { text, x: 72, y: 520 - row * 12, size: 9, font: 'code' };
  });
  const page = [0, 1, 2].flatMap((at) => paragraph(720 - at * 60));
  const { markdown } = await parseDocument({ bytes: handbookPdf([[...page, ...code]]) });
  assert.equal(markdown.split(Array(4).fill(prose).join(' ')).length - 1, 3, markdown);
});
