import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { ParseError, pictureFormats } from '../../src/content/parse/types.ts';
import { decodePicture, encodePicture, pictureKind } from '../../src/content/picture/codecs.ts';
import { type RgbaImage, shrink, turnUpright } from '../../src/content/picture/shrink.ts';
import { createLogger } from '../../src/lib/log.ts';
import { pdf } from '../support/documents.ts';
import { animatedGif, encodePng, gifOfLargeFrame, halves, withExif } from '../support/pictures.ts';

const pool = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 30_000, log: createLogger('silent') });
after(() => pool.close());

const pixelAt = ({ width, data }: RgbaImage, x: number, y: number) => [
  ...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4),
];
const decoded = async (bytes: Uint8Array) => {
  const kind = pictureKind(bytes);
  assert.ok(kind !== undefined && kind !== 'pdf');
  return decodePicture(kind, bytes);
};
const isNear = (actual: number[], expected: number[]) => {
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs((actual[i] ?? -1) - value) < 30, `${actual} ${expected}`);
};
const reason = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ParseError ? error.reason : error;
};

test('every format is read and written, as wide as asked and never wider than it was', async () => {
  for (const from of pictureFormats) {
    const source = await encodePicture(halves(400, 100), from);
    for (const format of pictureFormats) {
      const small = await pool.picture(source, { width: 128, format });
      assert.deepEqual([small.width, small.height, pictureKind(small.bytes)], [128, 32, format]);
      const picture = await decoded(small.bytes);
      isNear(pixelAt(picture, 10, 10), [255, 0, 0, 255]);
      isNear(pixelAt(picture, 117, 20), [0, 0, 255, 255]);
    }
    assert.equal((await pool.picture(source, { width: 2_048, format: 'webp' })).width, 400);
  }
});

test('a photo is turned upright, and its metadata is dropped', async () => {
  const photo = withExif(await encodePicture(halves(300, 100), 'jpeg'), 6);
  const small = await pool.picture(photo, { width: 64, format: 'jpeg' });
  assert.deepEqual([small.width, small.height], [64, 192]);
  const picture = await decoded(small.bytes);
  isNear(pixelAt(picture, 32, 5), [255, 0, 0, 255]);
  isNear(pixelAt(picture, 32, 186), [0, 0, 255, 255]);
  assert.ok(!Buffer.from(small.bytes).includes('Secret') && !Buffer.from(small.bytes).includes('Exif'));
});

test('each orientation of Exif turns a picture as its definition says', () => {
  // Where the first pixel and the one to its right are in the upright picture of 3 by 2 pixels.
  const places = [
    ...[
      [0, 0, 1, 0],
      [2, 0, 1, 0],
      [2, 1, 1, 1],
      [0, 1, 1, 1],
    ],
    ...[
      [0, 0, 0, 1],
      [1, 0, 1, 1],
      [1, 2, 1, 1],
      [0, 2, 0, 1],
    ],
  ];
  const data = new Uint8ClampedArray(24);
  data.set([1, 1, 1, 1, 2, 2, 2, 2]);
  for (const [i, [x1 = 0, y1 = 0, x2 = 0, y2 = 0]] of places.entries()) {
    const upright = turnUpright({ width: 3, height: 2, data }, i + 1);
    assert.deepEqual([upright.width, upright.height], i < 4 ? [3, 2] : [2, 3]);
    assert.deepEqual([pixelAt(upright, x1, y1)[0], pixelAt(upright, x2, y2)[0]], [1, 2], `orientation ${i + 1}`);
  }
});

test('a pixel of a small picture is the average of its area; what is transparent has no colour', () => {
  const picture = {
    width: 3,
    height: 1,
    data: new Uint8ClampedArray([90, 0, 0, 255, 0, 60, 0, 255, 250, 250, 250, 0]),
  };
  assert.deepEqual(pixelAt(shrink(picture, 1, 1), 0, 0), [45, 30, 0, 170]);
});

test('transparency is kept, and becomes white where the format has none', async () => {
  const source = await encodePicture(halves(128, 128, 0), 'png');
  const png = await decoded((await pool.picture(source, { width: 64, format: 'png' })).bytes);
  assert.equal(pixelAt(png, 5, 5)[3], 0);
  const jpeg = await decoded((await pool.picture(source, { width: 64, format: 'jpeg' })).bytes);
  isNear(pixelAt(jpeg, 5, 5), [255, 255, 255, 255]);
});

test('of an animation the first frame is shown, of a PDF the first page on white', async () => {
  const frame = await decoded((await pool.picture(animatedGif, { width: 64, format: 'png' })).bytes);
  isNear(pixelAt(frame, 0, 0), [255, 0, 0, 255]);
  // The frames after it are not read.
  const damaged = Buffer.concat([animatedGif.subarray(0, animatedGif.lastIndexOf(0x21)), Buffer.alloc(100, 0xff)]);
  assert.equal((await pool.picture(damaged, { width: 64, format: 'png' })).width, 2);
  const page = await pool.picture(pdf(), { width: 256, format: 'png' });
  assert.ok(page.width === 256 && page.height > 256);
  const { data } = await decoded(page.bytes);
  assert.deepEqual([...data.subarray(0, 4)], [255, 255, 255, 255]);
  assert.ok(
    data.some((value, i) => i % 4 < 3 && value < 128),
    'the page has no ink',
  );
});

test('pixels are bounded before they are decoded, and what is not a picture is refused', async () => {
  const png = Buffer.from(encodePng({ width: 10, height: 10, pixels: new Uint8Array(100) }));
  png.writeUInt32BE(100_000, 16);
  png.writeUInt32BE(100_000, 20);
  assert.equal(await reason(pool.picture(png, { width: 64, format: 'webp' })), 'extraction_failed');
  await assert.rejects(pool.picture(gifOfLargeFrame(), { width: 64, format: 'webp' }), /more than 24 million pixels/);
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><script>1</script></svg>');
  for (const bytes of [svg, Buffer.from('text'), Buffer.alloc(0)])
    assert.equal(await reason(pool.picture(bytes, { width: 64, format: 'webp' })), 'unsupported_content');
  for (const format of pictureFormats) {
    const whole = await encodePicture(halves(100, 100), format);
    assert.equal(await reason(pool.picture(whole.subarray(0, 30), { width: 64, format: 'webp' })), 'extraction_failed');
  }
});

test('damaged pictures leave no process in a state that the next picture suffers from', async () => {
  // In one process, the 71st did not end.
  for (let i = 0; i < 72; i++)
    await assert.rejects(pool.picture(damagedJpeg, { width: 16, format: 'webp' }), /damaged/, `number ${i}`);
});

/** The head of a JPEG and the rest of a WebP. */
const damagedJpeg = Buffer.from(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYV' +
    'pQYEpRUk//wAALCAEyA4QBAREA/8QAGwABAAIDAQEAAAAAAAAAAAAAAAUGAwQHAgH/xABTEAABAwMBBQQGBAgJCAsBAAAAAQIDBAURBgcSEyEx' +
    'FEFRcSIyYXSBsjaRobEVFjdScsHR8CMlNDVCc3Wi4SRTVFViY8LxFydEZIKSlaSztMPS/9oACAEBAAA/AOnAAAAAAAAAAAAAAAAAAAAAAAAAAA' +
    'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' +
    'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' +
    'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACWSCQjIiEmqACADYllANXxAD8ANMB+AFGA/ACtAMkAAYY2RmT2zJZm' +
    'AAZxJz/p9LhgAP7wm0LsxmhDwB7r9+QH/ID/+PfET5J3ZAtMQb+ypgYz5XeclMA8S3TmP/yaXYzgn/yb+H8gKIJR2BOsPKAAAA==',
  'base64',
);
