/**
 * Builds a one-page PDF with paragraphs, a heading, a list and a table: enough to run every part of the reader once.
 * The words do not matter.
 */
export function samplePdf(): Uint8Array {
  const content: string[] = [];
  let y = 760;
  const line = (text: string, size = 10, x = 60): void => {
    content.push(`BT /F1 ${size} Tf ${x} ${y} Td (${text}) Tj ET`);
  };
  const down = (step = 13): void => {
    y -= step;
  };
  line('A sample of a page', 18);
  down(30);
  for (let paragraph = 0; paragraph < 6; paragraph++) {
    for (let row = 0; row < 5; row++) {
      line(
        'The quick brown fox jumps over the lazy dog and the sentence goes on as far as the line can hold it, more or less',
      );
      down();
    }
    down(10);
  }
  for (const item of ['one thing', 'another thing', 'a third thing']) {
    line(`- ${item}`);
    down();
  }
  for (const row of ['Name,Count,Price', 'Bolt,12,3.50', 'Nut,40,1.25', 'Washer,7,0.10']) {
    row.split(',').forEach((cell, column) => {
      line(cell, 10, 60 + column * 120);
    });
    down();
  }
  return buildPdf([content.join('\n')]);
}

/** Builds a PDF file whose pages draw this content with Helvetica as /F1. */
export function buildPdf(pages: string[]): Uint8Array {
  const objects: string[] = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  ];
  pages.forEach((content, index) => {
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + index * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    );
  });
  let file = '%PDF-1.4\n';
  const offsets = objects.map((body, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${body}\nendobj\n`;
    return offset;
  });
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`;
  file += offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return new TextEncoder().encode(file);
}
