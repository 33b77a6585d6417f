/**
 * What small pictures cost, in one run:
 *   node bench/pictures.ts [--rounds 5]
 * Time of a photo of 12 million pixels, of one of 24 million and of a PDF's first page through the parser pool, and the
 * memory that its process reached, from a process that has already made one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ParserPool } from '../src/content/parse/pool/pool.ts';
import { samplePdf } from '../src/content/parse/sample-pdf.ts';
import { encodePicture } from '../src/content/picture/codecs.ts';
import { createLogger } from '../src/lib/log.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const rounds = Number(values.rounds);

const sources: [string, Uint8Array][] = [
  ['JPEG, 12 million pixels', await photo(4_000, 3_000)],
  ['JPEG, 24 million pixels', await photo(5_650, 4_240)],
  ['PNG, 2 million pixels', await encodePicture(landscape(1_600, 1_250), 'png')],
  ['PDF, one page', samplePdf()],
];
for (const [name, bytes] of sources) {
  const pool = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 60_000, log: createLogger('error') });
  const request = { width: 512, format: 'webp' } as const;
  await pool.picture(bytes, { width: 64, format: 'webp' });
  const times: number[] = [];
  let peakMb = 0;
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const watch = setInterval(() => {
      peakMb = Math.max(peakMb, largestChildMb());
    }, 10);
    await pool.picture(bytes, request);
    clearInterval(watch);
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  const size = (bytes.byteLength / 1024 / 1024).toFixed(1);
  console.log(
    `${name.padEnd(24)} ${size.padStart(5)} MB  ${Math.round(times[Math.floor(rounds / 2)] ?? 0)} ms  ${Math.round(peakMb)} MB of memory`,
  );
  await pool.close();
}

/** Smooth with some grain, as photos are. */
function landscape(width: number, height: number) {
  const data = new Uint8ClampedArray(width * height * 4);
  let seed = 1;
  for (let i = 0; i < data.length; i += 4) {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    const x = (i / 4) % width;
    const grain = (seed >> 16) & 15;
    data.set([(x * 255) / width, (i * 200) / data.length, 120 + grain, 255], i);
    data[i] = (data[i] ?? 0) + grain;
  }
  return { width, height, data };
}

function photo(width: number, height: number): Promise<Uint8Array> {
  return encodePicture(landscape(width, height), 'jpeg');
}

/** The largest resident set among the child processes. */
function largestChildMb(): number {
  let largest = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      if (Number(/PPid:\s+(\d+)/.exec(status)?.[1]) !== process.pid) continue;
      largest = Math.max(largest, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    } catch {
      // It has ended.
    }
  return largest;
}
