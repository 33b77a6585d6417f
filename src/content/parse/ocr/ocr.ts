import { spawn } from 'node:child_process';
import { programFile } from '../../../program-file.ts';
import { findConfinement, processorSecondsMax } from '../pool/confinement.ts';
import { ParseError, parseLimits } from '../types.ts';

/** A page that is only a picture, and where its text belongs in the Markdown. */
export type ScannedPage = {
  /** Text in the Markdown that the recognised text replaces. */
  placeholder: string;
};
type RecogniseOptions = { deadlineMs: number; signal: AbortSignal | undefined };

const memoryKbMax = 2 * 1024 * 1024;
const outputBytesMax = 16 * 1024 * 1024;
const ownWorkerFile = programFile('../pool/worker', import.meta.url);
let available: Promise<boolean> | undefined;

/** Whether the `tesseract` program is installed. Checked once. */
export function ocrAvailable(): Promise<boolean> {
  available ??= runTesseract(['--version'], new Uint8Array(), { deadlineMs: 5_000, signal: undefined }).then(
    () => true,
    () => false,
  );
  return available;
}

/** Inserts the recognised text of each page image into the Markdown. Throws ParseError. */
export async function recognisePages(
  markdown: string,
  scans: ScannedPage[],
  images: Uint8Array[],
  options: RecogniseOptions,
): Promise<string> {
  const end = performance.now() + options.deadlineMs;
  let result = markdown;
  let found = false;
  for (const [index, scan] of scans.slice(0, parseLimits.ocrPagesMax).entries()) {
    const leftMs = end - performance.now();
    if (leftMs <= 0) throw new ParseError('timeout', 'Recognising the text of the scanned pages took too long.');
    const recognised = await runTesseract(['stdin', 'stdout'], images[index] ?? new Uint8Array(), {
      ...options,
      deadlineMs: leftMs,
    });
    const words = plainParagraphs(recognised);
    found ||= words !== '';
    result = result.replace(scan.placeholder, () => words);
  }
  if (!found && result.replaceAll(/<!--[\s\S]*?-->/g, '').trim() === '')
    throw new ParseError('extraction_failed', 'The document is a scan and no text could be recognised in it.');
  return `${result.replaceAll(/\n{3,}/g, '\n\n').trim()}\n`;
}

function plainParagraphs(text: string): string {
  return text
    .replaceAll('\f', '')
    .split(/\n\s*\n/)
    .map((paragraph) =>
      paragraph
        .replaceAll(/(\p{Ll})-\n(?=\p{Ll})/gu, '$1')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .filter((paragraph) => paragraph !== '')
    .join('\n\n');
}

/** Confined and limited like a parser process: a picture is as untrusted as other documents. */
function confined(args: string[]): [string, string[]] {
  const { prefix, limits } = findConfinement(ownWorkerFile);
  if (!limits) return ['tesseract', args];
  const bounds = `ulimit -v ${memoryKbMax}; ulimit -t ${processorSecondsMax}; ulimit -f 0; ulimit -c 0`;
  const [command = '', ...rest] = [...prefix, '/bin/sh', '-c', `${bounds}; exec tesseract "$@"`, 'sh', ...args];
  return [command, rest];
}

/** The program gets the picture on standard input, an environment with only a search path, and a deadline. */
function runTesseract(args: string[], input: Uint8Array, options: RecogniseOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const [program, programArguments] = confined(args);
    const child = spawn(program, programArguments, {
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin', OMP_THREAD_LIMIT: '1' },
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
      ...(options.signal ? { signal: options.signal } : {}),
      killSignal: 'SIGKILL',
      timeout: Math.ceil(options.deadlineMs),
    });
    const chunks: Buffer[] = [];
    let length = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > outputBytesMax) child.kill('SIGKILL');
      else chunks.push(chunk);
    });
    child.stdin.on('error', () => {}); // the exit is reported instead
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
      else if (signal) reject(new ParseError('timeout', 'Recognising the text of the picture took too long.'));
      else reject(new ParseError('extraction_failed', 'The text of the picture could not be recognised.'));
    });
    child.stdin.end(input);
  });
}
