/**
 * A parser process that sleeps after each picture that it recognises, except the first, without using the processor.
 */
import { TesseractEngine } from '../../src/content/parse/ocr/engine.ts';

const restMs = 1_500;
const { recognise } = TesseractEngine.prototype;
let count = 0;

TesseractEngine.prototype.recognise = function (this: TesseractEngine, ...input) {
  const lines = recognise.apply(this, input);
  if (count++ > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, restMs);
  return lines;
};
await import('../../src/content/parse/pool/worker.ts');
