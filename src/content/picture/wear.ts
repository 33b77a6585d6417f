/**
 * A codec that throws leaves its WebAssembly instance as it was at that moment: the memory and the part of its stack
 * that it used are lost. After 70 damaged JPEGs, the next one did not end, and after more of them, undamaged pictures
 * failed. So the process is replaced before that.
 */
const failuresMax = 16;
let failures = 0;

export function noteCodecFailure(): void {
  failures += 1;
}

export function areCodecsWorn(): boolean {
  return failures >= failuresMax;
}
