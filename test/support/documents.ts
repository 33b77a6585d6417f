/** Generates small documents of every format, for tests and the fuzz run. */
import { readFileSync } from 'node:fs';
import { buildPdf, samplePdf } from '../../src/content/parse/sample-pdf.ts';
import { compoundFile } from './compound-file.ts';
import { relations, text, zip } from './office-parts.ts';
import { xlsb } from './xlsb.ts';

export type SampleDocument = { filename: string; bytes: Uint8Array };

/** One document of each format; all say “Harbour report”, most with a heading, a list and a table. */
export function sampleDocuments(): SampleDocument[] {
  return [
    { filename: 'sample.pdf', bytes: pdf() },
    { filename: 'sample.docx', bytes: docx() },
    { filename: 'sample.pptx', bytes: pptx() },
    { filename: 'sample.xlsx', bytes: xlsx() },
    { filename: 'sample.xlsb', bytes: xlsb() },
    { filename: 'sample.odt', bytes: odt() },
    { filename: 'sample.ods', bytes: ods() },
    { filename: 'sample.odp', bytes: odp() },
    { filename: 'sample.epub', bytes: epub() },
    { filename: 'sample.rtf', bytes: text(rtfText) },
    { filename: 'sample.eml', bytes: text(mailText) },
    { filename: 'sample.html', bytes: text(htmlText) },
    { filename: 'sample.md', bytes: text('# Harbour report\n\nShips came and went.\n') },
    { filename: 'sample.csv', bytes: text('Ship,Tons,Port\nAurora,1200,Bergen\nBoreas,900,"Oslo, east"\n') },
    { filename: 'sample.json', bytes: text('{"report": "Harbour report", "ships": ["Aurora", "Boreas"]}') },
    { filename: 'sample.ipynb', bytes: text(notebookText) },
    { filename: 'sample.xml', bytes: text('<?xml version="1.0"?><report><title>Harbour report</title></report>') },
    { filename: 'sample.txt', bytes: text('Harbour report\n\nShips came and went.\n') },
    { filename: 'sample.ppt', bytes: ppt() },
    { filename: 'sample.msg', bytes: msg() },
    ...['sample.doc', 'sample.xls'].map((filename) => ({
      filename,
      bytes: fixture(filename),
    })),
  ];
}

export function fixture(name: string): Uint8Array {
  return readFileSync(new URL(`../fixtures/documents/${name}`, import.meta.url));
}

export function pdf(): Uint8Array {
  return samplePdf();
}

/** A PDF whose pages have these lines, and optionally a running header and a page number at the foot. */
export function pdfOfPages(pages: string[][], options: { head?: string; numbered?: boolean } = {}): Uint8Array {
  return buildPdf(
    pages.map((lines, index) => {
      const out = lines.map((line, row) => drawn(line, 72, 700 - row * 14, 10));
      if (options.head !== undefined) out.push(drawn(options.head, 72, 760, 9));
      if (options.numbered) out.push(drawn(String(index + 1), 300, 30, 9));
      return out.join('\n');
    }),
  );
}

function drawn(line: string, x: number, y: number, size: number): string {
  return `BT /F1 ${size} Tf ${x} ${y} Td (${line.replaceAll(/[\\()]/g, '\\$&')}) Tj ET`;
}

const contentTypes =
  '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>';

export const docxBody = `<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Harbour report</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Ships came </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>and went</w:t></w:r><w:r><w:t>.</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>Aurora</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>Boreas</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Ship</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Tons</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>Aurora</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>1200</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`;

export function docx(body = docxBody, prologue = ''): Uint8Array {
  return zip({
    '[Content_Types].xml': contentTypes,
    '_rels/.rels': relations([['rId1', 'officeDocument', 'word/document.xml']]),
    'word/_rels/document.xml.rels': relations([
      ['rId1', 'styles', 'styles.xml'],
      ['rId2', 'numbering', 'numbering.xml'],
    ]),
    'word/document.xml': `<?xml version="1.0"?>${prologue}<w:document xmlns:w="w"><w:body>${body}</w:body></w:document>`,
    'word/styles.xml':
      '<w:styles xmlns:w="w"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>',
    'word/numbering.xml':
      '<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
  });
}

function pptx(): Uint8Array {
  const shape = (type: string, paragraphs: string[]): string =>
    `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${type}"/></p:nvPr></p:nvSpPr><p:txBody>${paragraphs
      .map(
        (one) =>
          `<a:p>${type === 'body' ? '<a:pPr><a:buChar char="•"/></a:pPr>' : ''}<a:r><a:t>${one}</a:t></a:r></a:p>`,
      )
      .join('')}</p:txBody></p:sp>`;
  const slide = (title: string, points: string[]): string =>
    `<p:sld xmlns:p="p" xmlns:a="a"><p:cSld><p:spTree>${shape('title', [title])}${shape('body', points)}</p:spTree></p:cSld></p:sld>`;
  return zip({
    '[Content_Types].xml': contentTypes,
    '_rels/.rels': relations([['rId1', 'officeDocument', 'ppt/presentation.xml']]),
    'ppt/_rels/presentation.xml.rels': relations([
      ['rId1', 'slide', 'slides/slide1.xml'],
      ['rId2', 'slide', 'slides/slide2.xml'],
    ]),
    'ppt/presentation.xml':
      '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId1"/><p:sldId id="257" r:id="rId2"/></p:sldIdLst></p:presentation>',
    'ppt/slides/slide1.xml': slide('Harbour report', ['Ships came', 'Ships went']),
    'ppt/slides/slide2.xml': slide('Outlook', ['Fair wind']),
  });
}

function xlsx(): Uint8Array {
  return zip({
    '[Content_Types].xml': contentTypes,
    '_rels/.rels': relations([['rId1', 'officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': relations([
      ['rId1', 'worksheet', 'worksheets/sheet1.xml'],
      ['rId2', 'styles', 'styles.xml'],
    ]),
    'xl/workbook.xml':
      '<workbook xmlns:r="r"><sheets><sheet name="Harbour report" sheetId="1" r:id="rId1"/></sheets></workbook>',
    'xl/styles.xml': '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    'xl/worksheets/sheet1.xml':
      '<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>Ship</t></is></c><c r="B1" t="inlineStr"><is><t>Arrived</t></is></c></row><row r="2"><c r="A2" t="inlineStr"><is><t>Aurora</t></is></c><c r="B2" s="1"><v>45292</v></c></row></sheetData></worksheet>',
  });
}

export function openDocument(
  mimetype: string,
  body: string,
  parts: Record<string, string | Uint8Array> = {},
): Uint8Array {
  return zip({
    ...parts,
    mimetype,
    'META-INF/manifest.xml': '<manifest/>',
    'content.xml': `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:presentation="p"><office:body>${body}</office:body></office:document-content>`,
  });
}

function odt(): Uint8Array {
  return openDocument(
    'application/vnd.oasis.opendocument.text',
    '<office:text><text:h text:outline-level="1">Harbour report</text:h><text:p>Ships came and went.</text:p><text:list><text:list-item><text:p>Aurora</text:p></text:list-item></text:list><table:table><table:table-row><table:table-cell><text:p>Ship</text:p></table:table-cell><table:table-cell><text:p>Tons</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>Aurora</text:p></table:table-cell><table:table-cell><text:p>1200</text:p></table:table-cell></table:table-row></table:table></office:text>',
  );
}

function ods(): Uint8Array {
  return openDocument(
    'application/vnd.oasis.opendocument.spreadsheet',
    '<office:spreadsheet><table:table table:name="Harbour report"><table:table-row><table:table-cell><text:p>Ship</text:p></table:table-cell><table:table-cell><text:p>Tons</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>Aurora</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="1200"><text:p>1,200</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet>',
  );
}

function odp(): Uint8Array {
  return openDocument(
    'application/vnd.oasis.opendocument.presentation',
    '<office:presentation><draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Harbour report</text:p></draw:text-box></draw:frame><draw:frame presentation:class="outline"><draw:text-box><text:list><text:list-item><text:p>Ships came</text:p></text:list-item></text:list></draw:text-box></draw:frame></draw:page></office:presentation>',
  );
}

function epub(): Uint8Array {
  return zip({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    'OPS/book.opf':
      '<package><metadata xmlns:dc="dc"><dc:title>Harbour report</dc:title><dc:language>en</dc:language><dc:creator>A. Pilot</dc:creator></metadata><manifest><item id="c1" href="one.xhtml" media-type="application/xhtml+xml"/><item id="c2" href="two.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c2"/><itemref idref="c1"/></spine></package>',
    'OPS/one.xhtml': '<html><body><h2>Second chapter</h2><p>Ships went.</p></body></html>',
    'OPS/two.xhtml': '<html><body><h1>Harbour report</h1><p>Ships came.</p></body></html>',
  });
}

const rtfText = String.raw`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\stylesheet{\s1 heading 1;}}
{\pard\s1 Harbour report\par}{\pard Ships {\b came} and w\'e9nt \u8212? all of them.\par}
\trowd\cellx2000\cellx4000\pard\intbl Ship\cell Tons\cell\row\trowd\cellx2000\cellx4000\pard\intbl Aurora\cell 1200\cell\row\pard\par}`;

const notebookText =
  '{"cells": [{"cell_type": "markdown", "source": ["# Harbour report\\n", "\\n", "Ships came."]}, {"cell_type": "code", "source": "ships", "outputs": [{"output_type": "stream", "text": ["Aurora\\n"]}]}], "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}';

const mailText = `From: A. Pilot <pilot@example.org>\r
To: Harbour <harbour@example.org>\r
Subject: Harbour report\r
Date: Wed, 31 Jan 2024 12:00:00 +0000\r
Message-ID: <1@example.org>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=x\r
\r
--x\r
Content-Type: text/html; charset=utf-8\r
\r
<p>Ships <b>came</b> and went.</p>\r
--x\r
Content-Type: application/pdf; name="tides.pdf"\r
Content-Disposition: attachment; filename="tides.pdf"\r
Content-Transfer-Encoding: base64\r
\r
JVBERg==\r
--x--\r
`;

const htmlText =
  '<!doctype html><html lang="en"><head><title>Harbour report</title><script>alert(1)</script></head><body><h1>Harbour report</h1><p>Ships <b>came</b> and went.</p><ul><li>Aurora<ul><li>from Bergen</li></ul></li><li>Boreas</li></ul><table><tr><th>Ship</th><th>Tons</th></tr><tr><td>Aurora</td><td>1200</td></tr></table><pre><code class="language-js">let a = 1;</code></pre></body></html>';

/** A record of an old presentation. */
function atom(type: number, body: Buffer, head = 0): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeUInt16LE(head, 0);
  prefix.writeUInt16LE(type, 2);
  prefix.writeUInt32LE(body.byteLength, 4);
  return Buffer.concat([prefix, body]);
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeInt32LE(value | 0, index * 4);
  });
  return bytes;
}

/**
 * An old presentation of one slide with a drawn table. Each cell has its position: left, top, right, bottom. If there are
 * more slides, all of them name the same object.
 */
export function pptWithTable(cells: [text: string, place: number[]][], slides = 1): Uint8Array {
  const container = 15;
  const tableMark = Buffer.concat([Buffer.from([0x9f, 0x03]), numbers(1)]);
  const group = [
    atom(0xf004, atom(0xf122, tableMark, 0x13), container),
    ...cells.map(([cellText, place]) =>
      atom(
        0xf004,
        Buffer.concat([
          atom(0xf00f, numbers(...place)),
          atom(0xf00d, atom(4000, Buffer.from(cellText, 'utf16le')), container),
        ]),
        container,
      ),
    ),
  ];
  const slide = atom(1006, atom(0xf003, Buffer.concat(group), container), container);
  const entry = atom(1011, Buffer.concat([numbers(1), Buffer.alloc(16)]));
  const list = atom(4080, Buffer.concat(Array.from({ length: slides }, () => entry)), container);
  const document = atom(1000, list, container);
  const directory = atom(6002, numbers((1 << 20) | 1, document.byteLength));
  const edit = document.byteLength + slide.byteLength + directory.byteLength;
  const editBody = numbers(0, 0, 0, document.byteLength + slide.byteLength, 1, 1, 0);
  return compoundFile({
    'PowerPoint Document': Buffer.concat([document, slide, directory, atom(4085, editBody)]),
    'Current User': Buffer.concat([Buffer.alloc(8), numbers(20, 0, edit)]),
  });
}

/** An old presentation that was saved, changed and saved again: its slide has another title, and notes. */
export function editedPpt(): Uint8Array {
  const container = 15;
  const words = (kind: number, content: string): Buffer =>
    Buffer.concat([atom(3999, numbers(kind)), atom(4000, Buffer.from(content, 'utf16le'))]);
  const document = (title: string): Buffer => {
    const slides = Buffer.concat([atom(1011, numbers(2, 0, 0, 256, 0)), words(0, title)]);
    const list = atom(4080, slides, container);
    return atom(1000, Buffer.concat([list, atom(4080, atom(1011, numbers(3, 0, 0, 0, 0)), 0x2f)]), container);
  };
  const slide = atom(1006, atom(0xf00d, words(4, 'Ships came'), container), container);
  const page = Buffer.concat([words(2, 'Wait for the tide'), words(4, 'Page 1')]);
  const notes = atom(1008, Buffer.concat([atom(1009, numbers(256, 0)), atom(0xf00d, page, container)]), container);
  const stream: Buffer[] = [];
  const end = (): number => stream.reduce((sum, one) => sum + one.byteLength, 0);
  const save = (objects: Buffer[], previous: number): number => {
    const places = objects.map((object) => {
      const at = end();
      stream.push(object);
      return at;
    });
    const directory = end();
    stream.push(atom(6002, numbers((objects.length << 20) | 1, ...places)));
    const edit = end();
    stream.push(atom(4085, numbers(0, 0, previous, directory, 1, 4, 0)));
    return edit;
  };
  const first = save([document('Old report'), slide, notes], 0);
  const second = save([document('Harbour report')], first);
  return compoundFile({
    'PowerPoint Document': Buffer.concat(stream),
    'Current User': Buffer.concat([Buffer.alloc(8), numbers(20, 0, second)]),
  });
}

/** An old presentation of two slides, up to its list of slide texts. */
function ppt(): Uint8Array {
  const slide = (title: string, points: string): Buffer =>
    Buffer.concat([
      atom(1011, Buffer.alloc(20)),
      atom(3999, numbers(0)),
      atom(4000, Buffer.from(title, 'utf16le')),
      atom(3999, numbers(1)),
      atom(4008, Buffer.from(points, 'latin1')),
    ]);
  const list = atom(
    4080,
    Buffer.concat([slide('Harbour report', 'Ships came\rShips went'), slide('Outlook', 'Fair wind')]),
    15,
  );
  return compoundFile({ 'PowerPoint Document': atom(1000, list, 15) });
}

/** An Outlook message with two attachments: a file without contents, and a message. */
function msg(): Uint8Array {
  return outlookMessage('Harbour report', 'Ships came and went.', [
    { name: 'tides.pdf' },
    { name: 'Reply', message: { text: 'Fair wind.', files: [{ name: 'crew.csv', bytes: 'ship,crew\nAurora,12\n' }] } },
  ]);
}

type OutlookFile = { name: string; bytes?: string; message?: { text: string; files?: OutlookFile[] } };

export function outlookMessage(subject: string, body: string, files: OutlookFile[]): Uint8Array {
  const streams: Record<string, Buffer> = {};
  const wide = (value: string): Buffer => Buffer.from(value, 'utf16le');
  const add = (place: string, title: string, words: string, attached: OutlookFile[]): void => {
    streams[`${place}__properties_version1.0`] = Buffer.alloc(32);
    streams[`${place}__substg1.0_0037001F`] = wide(title);
    streams[`${place}__substg1.0_1000001F`] = wide(words);
    streams[`${place}__substg1.0_0C1A001F`] = wide('A. Pilot');
    streams[`${place}__substg1.0_0E04001F`] = wide('Harbour');
    for (const [at, { name, bytes, message }] of attached.entries()) {
      const folder = `${place}__attach_version1.0_#${at.toString(16).padStart(8, '0')}/`;
      streams[`${folder}__substg1.0_3707001F`] = wide(name);
      if (bytes !== undefined) streams[`${folder}__substg1.0_37010102`] = Buffer.from(bytes.padEnd(4096, '\n'));
      if (message) add(`${folder}__substg1.0_3701000D/`, name, message.text, message.files ?? []);
    }
  };
  add('', subject, body, files);
  return compoundFile(streams);
}
