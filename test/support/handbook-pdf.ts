/** A piece of text on a page: its position, size, font, and colour as shares of red, green and blue. */
type Drawn = { text: string; x: number; y: number; size?: number; font?: keyof typeof fonts; colour?: string };

/** `hebrew…`: the letters A to Z stand for Hebrew letters, the digits for Arabic-Indic ones. */
const fonts = {
  roman: ['F1', 'Times-Roman'],
  bold: ['F2', 'Times-Bold'],
  hebrew: ['F3', 'Times-Roman'],
  hebrewBold: ['F4', 'Times-Bold'],
  italic: ['F5', 'Times-Italic'],
  caps: ['F6', 'RomanCaps10-Regular'],
  code: ['F7', 'Courier'],
} as const;

const letters = '/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /H def /CMapType 2 def\n';
const toUnicode = `${letters}1 begincodespacerange <00> <ff> endcodespacerange
2 beginbfrange <30> <39> <0660> <41> <5a> <05d0> endbfrange endcmap end end`;

/** A PDF set like a handbook: bold section titles in the size of the text, and running headers. */
export function handbookPdf(pages: Drawn[][]): Uint8Array {
  const contents = pages.map((drawn) =>
    drawn
      .map(({ text, x, y, size = 10, font = 'roman', colour = '0 0 0' }) => {
        const shown = text.replaceAll(/[\\()]/g, '\\$&');
        return `${colour} rg BT /${fonts[font][0]} ${size} Tf ${x} ${y} Td (${shown}) Tj ET`;
      })
      .join('\n'),
  );
  const letterMap = 3 + Object.keys(fonts).length;
  const first = letterMap + 1;
  const fontObjects = Object.entries(fonts).map(
    ([name, [, base]]) =>
      `<< /Type /Font /Subtype /Type1 /BaseFont /${base}${name.startsWith('hebrew') ? ` /ToUnicode ${letterMap} 0 R` : ''} >>`,
  );
  const named = Object.values(fonts).map(([name], at) => `/${name} ${3 + at} 0 R`);
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages.map((_, at) => `${first + at * 2} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    ...fontObjects,
    stream(toUnicode),
    ...contents.flatMap((content, at) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + 1 + at * 2} 0 R /Resources << /Font << ${named.join(' ')} >> >> >>`,
      stream(content),
    ]),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((body, at) => {
    const offset = file.length;
    file += `${at + 1} 0 obj\n${body}\nendobj\n`;
    return `${String(offset).padStart(10, '0')} 00000 n \n`;
  });
  const start = file.length;
  const size = objects.length + 1;
  file += `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join('')}`;
  file += `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, 'latin1');
}

function stream(content: string): string {
  return `<< /Length ${content.length} >>\nstream\n${content}\nendstream`;
}
