import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { docx } from '../support/documents.ts';
import { relations, text, zip } from '../support/office-parts.ts';

async function markdownOf(bytes: Uint8Array): Promise<string> {
  return (await parseDocument({ bytes })).markdown;
}

const run = (content: string, properties = ''): string =>
  `<w:r><w:rPr>${properties}</w:rPr><w:t xml:space="preserve">${content}</w:t></w:r>`;
const paragraph = (content: string, properties = ''): string => `<w:p><w:pPr>${properties}</w:pPr>${content}</w:p>`;

/** A Word document whose body refers to these parts; `rId1` names the first of them. */
function docxWith(body: string, parts: [type: string, target: string, content: string][]): Uint8Array {
  return zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'word/document.xml']]),
    'word/_rels/document.xml.rels': relations(
      parts.map(([type, target], index): [string, string, string] => [`rId${index + 1}`, type, target]),
    ),
    'word/document.xml': `<w:document xmlns:w="w" xmlns:r="r" xmlns:dgm="d"><w:body>${body}</w:body></w:document>`,
    ...Object.fromEntries(parts.map(([, target, content]) => [`word/${target}`, content])),
  });
}

test('a link that is a field keeps its address', async () => {
  const mark = (type: string): string => `<w:r><w:fldChar w:fldCharType="${type}"/></w:r>`;
  const instruction = '<w:r><w:instrText> HYPERLINK "https://example.com/ships" \\o "Ships"</w:instrText></w:r>';
  const complex = mark('begin') + instruction + mark('separate') + run('the list') + mark('end');
  const simple = `<w:fldSimple w:instr=' HYPERLINK "https://example.com/ports" '>${run('the ports')}</w:fldSimple>`;
  const inner = `${mark('begin')}<w:r><w:instrText> HYPERLINK \\l "place"</w:instrText></w:r>${mark('separate')}${run('below')}${mark('end')}`;
  assert.equal(
    await markdownOf(docx(paragraph(`${run('See ')}${complex}${run(', ')}${simple}${run(' and ')}${inner}`))),
    'See [the list](https://example.com/ships), [the ports](https://example.com/ports) and below\n',
  );
});

test('a drop cap, and a paragraph whose end was deleted, are one with the next paragraph', async () => {
  const body = [
    paragraph(run('S'), '<w:framePr w:dropCap="drop" w:lines="3"/>'),
    paragraph(run('hips came.')),
    paragraph(run('They went'), '<w:rPr><w:del w:id="1"/></w:rPr>'),
    paragraph(run(' again.')),
    paragraph(run('Last'), '<w:rPr><w:del w:id="2"/></w:rPr>'),
  ];
  assert.equal(await markdownOf(docx(body.join(''))), 'Ships came.\n\nThey went again.\n\nLast\n');
});

test('a paragraph whose bullet is blank continues the item before it, and a note keeps its paragraphs', async () => {
  const item = (content: string, list: number): string =>
    paragraph(content, `<w:numPr><w:ilvl w:val="0"/><w:numId w:val="${list}"/></w:numPr>`);
  const level = (id: number, label: string): string =>
    `<w:abstractNum w:abstractNumId="${id}"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="${label}"/></w:lvl></w:abstractNum>`;
  const numbers = [1, 2].map((id) => `<w:num w:numId="${id}"><w:abstractNumId w:val="${id}"/></w:num>`).join('');
  const note =
    paragraph(run('10')) + paragraph(run('m', '') + run('2 ', '<w:vertAlign w:val="superscript"/>') + run('each'));
  const bytes = docxWith(
    item(`${run('Aurora')}<w:r><w:footnoteReference w:id="2"/></w:r>`, 1) +
      item(run('from Bergen'), 2) +
      item(run('Boreas'), 1),
    [
      [
        'numbering',
        'numbering.xml',
        `<w:numbering xmlns:w="w">${level(1, '•')}${level(2, ' ')}${numbers}</w:numbering>`,
      ],
      [
        'footnotes',
        'footnotes.xml',
        `<w:footnotes xmlns:w="w"><w:footnote w:id="2">${note}</w:footnote></w:footnotes>`,
      ],
    ],
  );
  assert.equal(
    await markdownOf(bytes),
    '- Aurora[^1]\n\n  from Bergen\n\n- Boreas\n\n[^1]: 10\n\n    m<sup>2</sup> each\n',
  );
});

test('text that a style hides is left out, unless the text itself says otherwise', async () => {
  const bytes = docxWith(
    paragraph(
      `${run('Seen.')}${run(' Hidden.', '<w:rStyle w:val="Note"/>')}${run(' Shown.', '<w:rStyle w:val="Note"/><w:vanish w:val="0"/>')}`,
    ),
    [
      [
        'styles',
        'styles.xml',
        '<w:styles xmlns:w="w"><w:style w:type="character" w:styleId="Note"><w:name w:val="Note"/><w:rPr><w:vanish/></w:rPr></w:style></w:styles>',
      ],
    ],
  );
  assert.equal(await markdownOf(bytes), 'Seen. Shown.\n');
});

test('the texts of a diagram in a Word document are a list, each once', async () => {
  const point = (content: string): string =>
    `<dgm:pt><dgm:t><a:p><a:r><a:t>${content}</a:t></a:r></a:p></dgm:t></dgm:pt>`;
  const bytes = docxWith(paragraph(`${run('Before.')}<w:r><w:drawing><dgm:relIds r:dm="rId1"/></w:drawing></w:r>`), [
    [
      'diagramData',
      'diagrams/data1.xml',
      `<dgm:dataModel xmlns:dgm="d" xmlns:a="a"><dgm:ptLst>${point('Load')}${point('Sail')}</dgm:ptLst></dgm:dataModel>`,
    ],
  ]);
  assert.equal(await markdownOf(bytes), 'Before.\n\n- Load\n- Sail\n');
});

test('documents in other formats within a Word document are read in their place', async () => {
  const html = '<html><body><h2>Ships</h2><p>Aurora</p></body></html>';
  const archive = `MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<html><body><p>Caf=C3=A9</p></body></html>\r\n--x--\r\n`;
  const bytes = docxWith(
    `${paragraph(run('Before.'))}<w:altChunk r:id="rId1"/><w:altChunk r:id="rId2"/><w:altChunk r:id="rId3"/><w:altChunk r:id="rId4"/>${paragraph(run('After.'))}`,
    [
      ['aFChunk', 'chunk1.html', html],
      ['aFChunk', 'chunk2.mht', archive],
      ['aFChunk', 'chunk3.rtf', '{\\rtf1 Boreas\\par}'],
      ['aFChunk', 'chunk4.txt', 'Plain * text'],
    ],
  );
  assert.equal(
    await markdownOf(bytes),
    'Before.\n\n## Ships\n\nAurora\n\nCafé\n\nBoreas\n\nPlain \\* text\n\nAfter.\n',
  );
});

test('RTF: notes follow the text that refers to them, with their paragraphs', async () => {
  const rtf =
    '{\\rtf1 Ships\\chftn{\\footnote \\pard\\plain {\\super \\chftn} Seen in \\i May\\i0 .\\par Twice.} came.\\par Then\\chftn{\\*\\footnote\\ftnalt At the end.} they went.\\par}';
  assert.equal(
    await markdownOf(text(rtf)),
    'Ships[^1] came.\n\nThen[^2] they went.\n\n[^1]: Seen in *May*.\n\n    Twice.\n\n[^2]: At the end.\n',
  );
});

test('RTF: what replaces a Unicode character ends with its group, and only the start of a group can be starred', async () => {
  const rtf =
    "{\\rtf1{\\listtext\\tab \\u8226 \\tab}First.\\par\\pard Na\\u239\\'efve \\u8364 {?}euro.\\par{\\f0\\i0\\*\\cs7 Kept.}{\n\\*\\unknown Gone.}\\par}";
  assert.equal(await markdownOf(text(rtf)), '- First.\n\nNaïve €?euro.\n\nKept.\n');
});

test('a mail that was saved in UTF-16 is read', async () => {
  const mail =
    'Subject: Ships\r\nFrom: a@example.com\r\nContent-Type: text/plain; charset="utf-8"\r\n\r\nAurora café\r\n';
  for (const bytes of [Buffer.from(`\ufeff${mail}`, 'utf16le'), Buffer.from(mail, 'utf16le')]) {
    const { kind, markdown } = await parseDocument({ bytes, filename: 'ships.eml' });
    assert.equal(kind, 'eml');
    assert.match(markdown, /^# Ships\n\n\*\*From:\*\* a@example\.com\n\nAurora café\n$/);
  }
});

test('the lines of a mail that are quoted are a quote, also directly below the line that introduces them', async () => {
  const mail = 'Subject: Ships\r\nFrom: a@example.com\r\n\r\nA. Pilot wrote:\r\n> Came?\r\n> > When?\r\nIn May.\r\n';
  assert.match(
    (await parseDocument({ bytes: text(mail), filename: 'ships.eml' })).markdown,
    /A\. Pilot wrote:\n\n> Came\?\n> When\?\n\nIn May\.\n$/,
  );
});

test('bullets and numbers that hang before a tab in RTF are items with their depth', async () => {
  const line = (left: number, content: string): string =>
    String.raw`{\pard \ql \sa0 \li${left} \fi-360 ${content}\par}`;
  const rtf = [
    String.raw`{\rtf1\ansi{\pard \li0 \fi0 Ships:\par}`,
    line(360, String.raw`\bullet \tx360\tab Aurora`),
    line(720, String.raw`1.\tx360\tab from Bergen`),
    line(720, String.raw`2.\tx360\tab from Oslo`),
    line(360, String.raw`\bullet \tx360\tab Boreas`),
    String.raw`{\pard \li720 \fi-360 Hanging, but no item\par}}`,
  ];
  assert.equal(
    await markdownOf(text(rtf.join('\n'))),
    'Ships:\n\n- Aurora\n    1. from Bergen\n    2. from Oslo\n- Boreas\n\nHanging, but no item\n',
  );
});
