import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type GreyImage, scaleDown } from '../../src/content/parse/ocr/image.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/lib/log.ts';
import { encodePng } from '../support/pictures.ts';
import { bookOf, drawPicture } from '../support/scans.ts';

let pool: ParserPool;

before(() => {
  pool = new ParserPool({ workers: 2, memoryMb: 512, deadlineMs: 60_000, log: createLogger('silent') });
});

after(() => pool.close());

const sentence = 'The harbour master counts the ships that come and go with every tide.';

function line(text: string, y: number, size = 11): string {
  return `BT /F1 ${size} Tf 60 ${y} Td (${text}) Tj ET`;
}

const paragraph = [...Array(4).keys()].map((row) => line(sentence, 705 - row * 15));
const letter = [line('Harbour report', 740, 20), ...paragraph].join('\n');

/** The picture whose pixel at x, y is made from the original one. */
function redraw(
  { width, height, pixels }: GreyImage,
  pixel: (value: number, x: number, y: number) => number,
): GreyImage {
  return { width, height, pixels: pixels.map((value, at) => pixel(value, at % width, Math.floor(at / width))) };
}

async function assertRead(file: Uint8Array, filename: string): Promise<void> {
  const { markdown } = await pool.parse({ bytes: file, filename });
  assert.match(markdown, /Harbour report/, filename);
  const count = markdown.replaceAll(/\s+/g, ' ').split(sentence.slice(0, -1)).length - 1;
  assert.ok(count >= paragraph.length - 1, `${filename}: ${markdown}`);
}

test('a page that was scanned sideways or upside down is read', async () => {
  const upright = await drawPicture(letter);
  const { width, height, pixels } = upright;
  const quarter = { width: height, height: width, pixels: new Uint8Array(pixels.length) };
  redraw(upright, (value, x, y) => {
    quarter.pixels[x * height + height - 1 - y] = value;
    return value;
  });
  const half = { ...upright, pixels: pixels.toReversed() };
  for (const [name, page] of Object.entries({ quarter, half })) await assertRead(bookOf([page]), `${name}.pdf`);
});

test('a page with a shadow over a part of it is read', async () => {
  const page = redraw(await drawPicture(letter), (value, x, y) => {
    const light = 0.4 + 0.6 / (1 + Math.exp((x + y - 700) / 40));
    return (value * 0.8 + 20) * light;
  });
  await assertRead(encodePng(page), 'shadow.png');
});

test('light text on a dark ground is read, on a whole page and on a part of one', async () => {
  const page = await drawPicture(letter, 300);
  await assertRead(encodePng(redraw(page, (value) => 220 - value * 0.75)), 'dark.png');
  const band = `0.13 g 0 640 612 152 re f 1 g ${letter} 0 g ${line(sentence, 600)}`;
  await assertRead(encodePng(await drawPicture(band, 220)), 'band.png');
});

test('the small type of a screen is read', async () => {
  const page = await drawPicture(letter.replaceAll('/F1 11', '/F1 8'), 300);
  await assertRead(encodePng(scaleDown(page, (page.width * page.height) / 4.6)), 'screen.png');
});
