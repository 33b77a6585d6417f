import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { buildPdf, samplePdf } from '../../src/content/parse/sample-pdf.ts';
import { type ParsedDocument, ParseError, type ParseFailure } from '../../src/content/parse/types.ts';
import { docx, docxBody, fixture, pdf, pdfOfPages, sampleDocuments } from '../support/documents.ts';
import { text, zip } from '../support/office-parts.ts';

async function parse(bytes: Uint8Array, filename?: string, contentType?: string): Promise<ParsedDocument> {
  return parseDocument({ bytes, ...(filename ? { filename } : {}), ...(contentType ? { contentType } : {}) });
}

async function assertFails(bytes: Uint8Array, reason: ParseFailure, words: RegExp, filename?: string): Promise<void> {
  await assert.rejects(parse(bytes, filename), (error: unknown) => {
    assert.ok(error instanceof ParseError, String(error));
    assert.equal(error.reason, reason);
    assert.match(error.message, words);
    return true;
  });
}

const shipTable = /\| Ship \| (?:Tons|Arrived)(?: \| \w+)? \|\n\| --- \| --- \|(?: --- \|)?\n\| Aurora \|/;

for (const { filename, bytes } of sampleDocuments()) {
  test(`${filename} gives its text, the same each time, under any name`, async () => {
    const named = await parse(bytes, filename);
    assert.match(named.markdown, /Harbour report|Aurora|A sample of a page/);
    assert.deepEqual(await parse(bytes, filename), named);
    const textual = /\.(?:md|txt|csv|xml|json|html)$/.test(filename);
    if (!textual) assert.deepEqual(await parse(bytes, 'something.bin', 'application/octet-stream'), named);
  });
}

for (const kind of ['docx', 'odt', 'rtf', 'html', 'doc', 'xlsx', 'xls', 'ods', 'csv'])
  test(`a table of a ${kind} document is a Markdown table`, async () => {
    const sample = sampleDocuments().find((one) => one.filename === `sample.${kind}`);
    assert.ok(sample);
    assert.match((await parse(sample.bytes, sample.filename)).markdown, shipTable);
  });

for (const kind of ['docx', 'odt', 'rtf', 'html', 'doc', 'pptx', 'ppt', 'odp', 'epub', 'eml', 'msg'])
  test(`the title of a ${kind} document is a heading`, async () => {
    const sample = sampleDocuments().find((one) => one.filename === `sample.${kind}`);
    assert.ok(sample);
    assert.match((await parse(sample.bytes, sample.filename)).markdown, /^# Harbour report$/m);
  });

test('a Word document keeps numbered lists and emphasis', async () => {
  const { markdown } = await parse(docx());
  assert.match(markdown, /Ships came \*\*and went\*\*\./);
  assert.match(markdown, /^1\. Aurora\n2\. Boreas$/m);
});

test('an e-book is read in the order of its spine, with its metadata', async () => {
  const book = sampleDocuments().find((one) => one.filename === 'sample.epub');
  assert.ok(book);
  const { markdown, title, language, author } = await parse(book.bytes);
  assert.ok(markdown.indexOf('Ships came') < markdown.indexOf('Ships went'));
  assert.deepEqual({ title, language, author }, { title: 'Harbour report', language: 'en', author: 'A. Pilot' });
});

test('mail names its attachments, its people and its date', async () => {
  const mail = sampleDocuments().find((one) => one.filename === 'sample.eml');
  assert.ok(mail);
  const { markdown, attachments, created } = await parse(mail.bytes);
  assert.match(markdown, /\*\*From:\*\* A\. Pilot/);
  assert.match(markdown, /Ships \*\*came\*\* and went\./);
  assert.deepEqual(attachments, ['tides.pdf']);
  assert.equal(created, '2024-01-31T12:00:00.000Z');
});

test('a script in a page is not text, a nested list keeps its depth, code its language', async () => {
  const page = sampleDocuments().find((one) => one.filename === 'sample.html');
  assert.ok(page);
  const { markdown } = await parse(page.bytes);
  assert.doesNotMatch(markdown, /alert/);
  assert.match(markdown, /- Aurora\n {4}- from Bergen\n- Boreas/);
  assert.match(markdown, /```js\nlet a = 1;\n```/);
});

test('a saved page has the address that it states, for its links and its type', async () => {
  const page = (head: string, before = ''): Buffer =>
    Buffer.from(
      `${before}<html><head><title>Port</title><meta property="og:type" content="website">${head}</head><body><nav></nav>
      <p>The port is open, as <a href="/rules">the rules</a> of the council say, every day of the year but one.</p></body></html>`,
    );
  const link = async (bytes: Buffer): Promise<string | undefined> =>
    /\]\((.+?)\)/.exec((await parseDocument({ bytes, filename: 'page.html' })).markdown)?.[1];
  assert.equal(await link(page('<link rel="canonical" href="https://port.test/a">')), 'https://port.test/rules');
  assert.equal(await link(page('<meta property="og:url" content="https://port.test/b">')), 'https://port.test/rules');
  assert.equal(await link(page('', '<!-- saved from url=(0018)https://old.test/c -->')), 'https://old.test/rules');
  assert.equal(await link(page('<link rel="canonical" href="/a">')), '/rules');
});

test('text that looks like markup stays text', async () => {
  const body = '<w:p><w:r><w:t># no heading</w:t></w:r></w:p><w:p><w:r><w:t>a * b &lt;c&gt; _d_ `e`</w:t></w:r></w:p>';
  const { markdown } = await parse(docx(body));
  assert.equal(markdown, '\\# no heading\n\na \\* b &lt;c> \\_d\\_ \\`e\\`\n');
});

test('a PDF has a heading, paragraphs, a list and a table', async () => {
  const { markdown, pages } = await parse(pdf());
  assert.equal(pages, 1);
  assert.match(markdown, /^# A sample of a page$/m);
  assert.match(markdown, /^- one thing\n- another thing\n- a third thing$/m);
  assert.match(markdown, /\| Name \| Count \| Price \|/);
});

test('a PDF loses its running heads and page numbers and marks its pages', async () => {
  const pages = ['alpha', 'beta', 'gamma', 'delta'].map((word) => [
    `This page is about ${word} and nothing else at all.`,
    'It ends here.',
  ]);
  const { markdown } = await parse(pdfOfPages(pages, { head: 'Annual report of the harbour', numbered: true }));
  assert.doesNotMatch(markdown, /Annual report|^\d+$/m);
  assert.deepEqual(markdown.match(/<!-- page \d -->/g), ['<!-- page 2 -->', '<!-- page 3 -->', '<!-- page 4 -->']);
});

test('a word cut at a line end is whole again, a compound keeps its hyphen', async () => {
  const lines = [
    'The harbour of this town has been known for its extraordi-',
    'nary depth since the middle ages, and its long-term tenants',
    'are paid well. Others have also asked for the same long-',
    'term terms and have been given them by the harbour master.',
  ];
  const { markdown } = await parse(pdfOfPages([lines]));
  assert.match(markdown, /extraordinary depth/);
  assert.match(markdown, /same long-term terms/);
});

test('Hebrew and Arabic pages read from right to left, Latin words in them from left to right', async () => {
  const { markdown } = await parse(fixture('right-to-left.pdf'));
  assert.match(markdown, /^# דוח הנמל לשנת 2023$/m);
  assert.match(markdown, /והחברה Northern Ferry הזמינה שתי אוניות חדשות\./);
  assert.match(markdown, /السفن جاءت وذهبت طوال العام/);
});

test('Arabic ligatures, and numbers, signs and brackets where scripts meet, are in reading order', async () => {
  const { markdown } = await parse(fixture('right-to-left-page.pdf'));
  assert.match(
    markdown,
    /السلام عليكم، لا تزال الأعمال مستمرة معاً \(انظر الجدول\) وقد طلبت شركة Northern Ferry سفينتين/,
  );
  assert.match(markdown, /بسعر 1,250 دولار في عام 2023، والدليل PDF متاح على https:\/\/example\.org\/docs للجميع\./);
  assert.match(markdown, /\(ראו טבלה 3\), במחיר של כ-45/);
  assert.match(markdown, /גידול של 12\.5% בשנת 2022\. החברה Northern Ferry הזמינה שתי אוניות דרך ה-API שלה\./);
});

test('a page from right to left has its headings, its right column first and its table', async () => {
  const { markdown } = await parse(fixture('right-to-left-page.pdf'));
  assert.match(markdown, /^# الأسلاك والآلات$/m);
  assert.match(markdown, /^## עיקרי הדברים$/m);
  assert.ok(markdown.indexOf('הטור הימני') < markdown.indexOf('מיליון'), markdown);
  assert.ok(markdown.indexOf('מיליון') < markdown.indexOf('הטור השמאלי'), markdown);
  assert.match(markdown, /^\| שם \| מספר \|\n\|[ -|]+\n\| מנועים \| 12 \|\n\| שרשראות \| 40 \|\n\| ברגים \| 7 \|$/m);
});

test('a page that is turned reads as it is shown', async () => {
  const title = 'BT /F1 18 Tf 0 1 -1 0 60 60 Tm (Harbour report) Tj ET';
  const body = 'BT /F1 10 Tf 0 1 -1 0 90 60 Tm (Ships came and went all year long.) Tj ET';
  const upright = Buffer.from(buildPdf([`${title} ${body}`])).toString('latin1');
  const turned = Buffer.from(
    upright.replace('/MediaBox [0 0 612 792]', '/MediaBox [0 0 612 792] /Rotate 90'),
    'latin1',
  );
  assert.equal((await parse(turned)).markdown, '# Harbour report\n\nShips came and went all year long.\n');
});

test('two columns that are drawn row by row are read one after the other', async () => {
  const left = Array.from({ length: 12 }, (_, row) => `left row ${row} goes on without an end in sight and`);
  const right = Array.from({ length: 12 }, (_, row) => `right row ${row} runs on as long as the left one does`);
  const rows = left.map((text, row) => {
    const y = 700 - row * 13;
    return `BT /F1 9 Tf 60 ${y} Td (${text}) Tj ET BT /F1 9 Tf 330 ${y} Td (${right[row]}) Tj ET`;
  });
  const { markdown } = await parse(buildPdf([rows.join('\n')]));
  assert.ok(markdown.indexOf('left row 11') < markdown.indexOf('right row 0'), markdown);
});

test('charsets are distinguished', async () => {
  const cases: [Uint8Array, string][] = [
    [Buffer.from('\ufeffHäfen und Schiffe', 'utf16le'), 'Häfen und Schiffe'],
    [Buffer.from('Häfen und Schiffe, Öl für die Küste', 'latin1'), 'Häfen und Schiffe, Öl für die Küste'],
    [
      Buffer.from([0x93, 0xfa, 0x96, 0x7b, 0x8c, 0xea, 0x82, 0xcc, 0x95, 0xb6, 0x8f, 0x91, 0x82, 0xc5, 0x82, 0xb7]),
      '日本語の文書です',
    ],
    [Buffer.from('Hafen', 'utf16le'), 'Hafen'],
  ];
  for (const [bytes, expected] of cases) assert.equal((await parse(bytes, 'a.txt')).markdown.trim(), expected);
  assert.equal(
    (await parse(Buffer.from([0xcf, 0xf0, 0xe8]), 'a.txt', 'text/plain; charset=windows-1251')).markdown.trim(),
    'При',
  );
});

test('an empty file, an encrypted one and a picture are refused in plain words', async () => {
  await assertFails(new Uint8Array(), 'extraction_failed', /empty/);
  await assertFails(docx(''), 'extraction_failed', /no text/);
  await assertFails(
    text('MZ\u0000\u0001\u0002binary\u0000'),
    'unsupported_content',
    /not in a format that can be read/,
  );
  const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010802000000', 'hex');
  await assertFails(png, 'unsupported_content', /picture, and no OCR engine is installed/);
  const encrypted = Buffer.from(docx());
  const entry = 'PK\u0001\u0002';
  for (let at = encrypted.indexOf(entry); at >= 0; at = encrypted.indexOf(entry, at + 4))
    encrypted.writeUInt16LE(1, at + 8);
  await assertFails(encrypted, 'unsupported_content', /password/);
  await assertFails(fixture('encrypted.pdf'), 'unsupported_content', /password/);
  await assertFails(zip({ 'a.txt': 'x' }), 'unsupported_content', /archive/);
});

test('a scan without an OCR engine and a PDF of too many pages say so', async () => {
  const picture = 'q 612 0 0 792 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q';
  await assertFails(buildPdf([picture]), 'unsupported_content', /scan.*no OCR engine is installed/);
  const pages = Array.from({ length: 10_001 }, () => '');
  await assertFails(buildPdf(pages), 'extraction_failed', /10001 pages/);
});

test('a file cut short says so', async () => {
  for (const bytes of [docx(), sampleDocuments().find((one) => one.filename === 'sample.doc')?.bytes ?? docx()])
    await assertFails(bytes.subarray(0, bytes.byteLength / 3), 'extraction_failed', /cut short|damaged/);
});

test('entities of a document type are not expanded', async () => {
  const bomb = '<!DOCTYPE x [<!ENTITY a "boom"><!ENTITY b "&a;&a;&a;">]>';
  const { markdown } = await parse(docx(docxBody.replace('Aurora', '&b;'), bomb));
  assert.doesNotMatch(markdown, /boom/);
});

test('an entry that inflates beyond the bound is refused', async () => {
  const filler = Buffer.alloc(1024 * 1024);
  const parts = Array.from({ length: 200 }, () => filler);
  const packed = deflateRawSync(Buffer.concat(parts));
  await assertFails(archiveWith('word/document.xml', packed, 200 * 1024 * 1024), 'extraction_failed', /far more/);
});

test('elements nested without end are refused or cut, never followed', async () => {
  await assertFails(docx('<w:p>'.repeat(20_000)), 'extraction_failed', /nested/);
  const page = `<html><body>${'<div>'.repeat(60_000)}deep${'</div>'.repeat(60_000)}</body></html>`;
  assert.match((await parse(text(page), 'a.html')).markdown, /deep/);
});

test('an archive in the ZIP64 form is read, and one with bytes after its end', async () => {
  const plain = Buffer.from(docx());
  assert.match((await parse(asZip64(plain))).markdown, /Harbour report/);
  assert.match((await parse(Buffer.concat([plain, Buffer.alloc(300, 'x')]))).markdown, /Harbour report/);
});

test('an archive that claims more entries than it has is refused', async () => {
  const claiming = asZip64(Buffer.from(docx()), 2 ** 40);
  await assertFails(claiming, 'extraction_failed', /far more|cannot be opened/);
});

test('a megabyte of attributes in one tag is read in linear time', async () => {
  const attributes = Array.from({ length: 100_000 }, (_, at) => `a${at}="x"`).join(' ');
  const { markdown } = await parse(docx(docxBody.replace('<w:p>', `<w:p ${attributes}>`)));
  assert.match(markdown, /Harbour report/);
});

/** The archive with a ZIP64 end record, in which alone the count and place of its entries stand. */
function asZip64(archive: Buffer, claimedEntries?: number): Uint8Array {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  const record = Buffer.alloc(56);
  record.writeUInt32LE(0x06064b50, 0);
  record.writeBigUInt64LE(44n, 4);
  record.writeBigUInt64LE(BigInt(archive.readUInt16LE(end + 8)), 24);
  record.writeBigUInt64LE(BigInt(claimedEntries ?? archive.readUInt16LE(end + 10)), 32);
  record.writeBigUInt64LE(BigInt(archive.readUInt32LE(end + 12)), 40);
  record.writeBigUInt64LE(BigInt(archive.readUInt32LE(end + 16)), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(end), 8);
  locator.writeUInt32LE(1, 16);
  const oldEnd = Buffer.from(archive.subarray(end));
  oldEnd.fill(0xff, 8, 20);
  return Buffer.concat([archive.subarray(0, end), record, locator, oldEnd]);
}

/** A stored archive header around a deflated entry, as zip tools would not write it. */
function archiveWith(name: string, packed: Buffer, size: number): Uint8Array {
  const local = Buffer.alloc(30 + name.length);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(8, 8);
  local.writeUInt32LE(packed.byteLength, 18);
  local.writeUInt32LE(size, 22);
  local.writeUInt16LE(name.length, 26);
  local.write(name, 30);
  const entry = Buffer.alloc(46 + name.length);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(8, 10);
  entry.writeUInt32LE(packed.byteLength, 20);
  entry.writeUInt32LE(size, 24);
  entry.writeUInt16LE(name.length, 28);
  entry.write(name, 46);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.byteLength, 12);
  end.writeUInt32LE(local.byteLength + packed.byteLength, 16);
  return Buffer.concat([local, packed, entry, end]);
}

test('a default title of a PDF is not a title', async () => {
  for (const [written, title] of [
    ['Harbour report', 'Harbour report'],
    ['\\(anonymous\\)', undefined],
    ['Untitled document', undefined],
  ] as const) {
    const { title: found } = await parseDocument({ bytes: withTitle(samplePdf(), written) });
    assert.equal(found, title, written);
  }
});

/** Appends an update that sets the title. */
function withTitle(pdf: Uint8Array, title: string): Uint8Array {
  const text = Buffer.from(pdf).toString('latin1');
  const [, size = '', previous = ''] = /\/Size (\d+)[\s\S]*startxref\n(\d+)/.exec(text) ?? [];
  const object = `${size} 0 obj\n<< /Title (${title}) >>\nendobj\n`;
  const entry = `${String(text.length).padStart(10, '0')} 00000 n \n`;
  const trailer = `<< /Size ${Number(size) + 1} /Root 1 0 R /Info ${size} 0 R /Prev ${previous} >>`;
  const table = `xref\n${size} 1\n${entry}trailer\n${trailer}\nstartxref\n${text.length + object.length}\n%%EOF\n`;
  return Buffer.from(text + object + table, 'latin1');
}

test('a notebook gives its Markdown, its code with the language of the kernel, and its outputs without pictures', async () => {
  const table = '<table><tr><th>Ship</th><th>Tons</th></tr><tr><td>Aurora</td><td>1200</td></tr></table>';
  const notebook = {
    cells: [
      { cell_type: 'markdown', source: ['# Harbour report\n', '\n', 'Ships *came*.'] },
      {
        cell_type: 'code',
        source: 'ships\n',
        outputs: [
          { output_type: 'stream', name: 'stdout', text: ['\u001b[31m2 ships\u001b[0m\n'] },
          { output_type: 'execute_result', data: { 'text/plain': 'Ship Tons', 'text/html': [table] } },
          { output_type: 'display_data', data: { 'image/png': 'iVBORw0KGgo=', 'text/plain': ['<Figure>'] } },
          { output_type: 'error', ename: 'KeyError', evalue: "'Boreas'", traceback: ['…'] },
        ],
      },
      { cell_type: 'code', source: [], outputs: [] },
    ],
    metadata: { title: 'Ships', kernelspec: { language: 'R', name: 'ir' } },
    nbformat: 4,
  };
  const bytes = text(JSON.stringify(notebook));
  const document = await parse(bytes, 'ships.ipynb');
  assert.equal(
    document.markdown,
    "# Harbour report\n\nShips *came*.\n\n```r\nships\n```\n\n```\n2 ships\n```\n\n| Ship | Tons |\n| --- | --- |\n| Aurora | 1200 |\n\n```\n<Figure>\n```\n\n```\nKeyError: 'Boreas'\n```\n",
  );
  assert.equal(document.title, 'Ships');
  assert.deepEqual(await parse(bytes), document);
  const other = await parse(text('{"cells": 5}'), 'other.ipynb');
  assert.equal(other.markdown, '```json\n{"cells": 5}\n```\n');
});

test('a notebook of version 3 is read from its worksheets', async () => {
  const cells = [
    { cell_type: 'heading', level: 2, source: 'Ships' },
    { cell_type: 'code', language: 'python', input: 'n', outputs: [{ output_type: 'pyout', text: ['2'] }] },
  ];
  const bytes = text(JSON.stringify({ nbformat: 3, metadata: {}, worksheets: [{ cells }] }));
  assert.equal((await parse(bytes, 'old.ipynb')).markdown, '## Ships\n\n```python\nn\n```\n\n```\n2\n```\n');
});
