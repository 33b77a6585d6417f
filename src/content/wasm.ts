/** What of WebAssembly is used here; the types that come with Node leave it to a browser's. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; run: WideLoop } };
};

/** A loop over numbers in the module's memory; its five parameters are local variables 0 to 4. */
export type WideLoop = (one: number, two: number, three: number, four: number, five: number) => void;

/** The instructions that the loops are written with (WebAssembly core specification, chapter 5: binary format). */
export const i32 = 0x7f;
export const v128 = 0x7b;
export const noValue = 0x40;
export const get = (local: number) => [0x20, local];
export const set = (local: number) => [0x21, local];
/** The local variable plus a constant between −64 and 63, as seven bits. */
export const add = (local: number, by: number) => [...get(local), 0x41, by, 0x6a];
/** An instruction on 128 bits. */
export const simd = (instruction: number) =>
  instruction < 0x80 ? [0xfd, instruction] : [0xfd, instruction & 0xff, 0x01];
/** Loads without an alignment or an offset. */
export const loadWith = (instruction: number) => [...simd(instruction), 0, 0];

/** A module with one function, `run`, of five parameters, and a memory of so many pages of 64 KiB. */
export function assembleLoop(body: number[], pages: number): { bytes: Uint8Array; run: WideLoop } {
  const named = (name: string) => [name.length, ...Buffer.from(name)];
  const section = (id: number, content: number[]) => [id, ...unsigned(content.length), ...content];
  const module = Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 5, i32, i32, i32, i32, i32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, pages]),
    ...section(7, [2, ...named('memory'), 2, 0, ...named('run'), 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
  const { memory, run } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
  return { bytes: new Uint8Array(memory.buffer), run };
}

/** A number below 16,384 in LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, value >>> 7];
}
