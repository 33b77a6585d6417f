import { PDFiumLibrary } from '@hyzyla/pdfium';
import { parseOffice } from 'officeparser';
import TurndownService from 'turndown';

/** The output of the plain engine for that format, or undefined if there is none. */
export async function plainEngine(format: string, bytes: Buffer): Promise<string | undefined> {
  try {
    if (format === 'pdf') return await plainPdf(bytes);
    if (format === 'html') return new TurndownService({ headingStyle: 'atx' }).turndown(bytes.toString('utf8'));
    if (['docx', 'pptx', 'xlsx', 'xlsm', 'odt', 'odp', 'ods', 'epub'].includes(format))
      return await plainOffice(format, bytes);
    return format === 'md' || format === 'csv' ? bytes.toString('utf8') : '';
  } catch {
    return '';
  }
}

async function plainPdf(bytes: Buffer): Promise<string> {
  const library = await PDFiumLibrary.init();
  const document = await library.loadDocument(bytes);
  const pages = [...document.pages()].map((page) => page.getText());
  document.destroy();
  library.destroy();
  return pages.join('\n\n');
}

async function plainOffice(format: string, bytes: Buffer): Promise<string> {
  const parsed = await parseOffice(bytes, { fileType: (format === 'xlsm' ? 'xlsx' : format) as 'docx' });
  const { value } = await parsed.to('md');
  return typeof value === 'string' ? value.replaceAll(/[ \t]*\{#[\w.:-]+\}/g, '') : '';
}
