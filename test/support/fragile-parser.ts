/** A parser process in which certain texts make it crash, hang, or exceed its memory. */

const { decode } = TextDecoder.prototype;
TextDecoder.prototype.decode = function (this: InstanceType<typeof TextDecoder>, ...input) {
  const text = decode.apply(this, input);
  if (text.startsWith('crash')) process.abort();
  // Waits without using the processor.
  if (text.startsWith('hang')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (text.startsWith('error')) throw new TypeError('an error that no parser expects');
  return text;
};
await import('../../src/content/parse/pool/worker.ts');
