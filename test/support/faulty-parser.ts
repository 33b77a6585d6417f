/** A parser process that misbehaves on demand, for tests of the pool. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { Worker } from 'node:worker_threads';
import { serve } from '../../src/content/parse/pool/worker-loop.ts';

declare const WebAssembly: {
  Memory: new (size: { initial: number; maximum: number }) => { grow(pages: number): number; buffer: ArrayBuffer };
};

serve({
  /** Reports any bytes as a part of a mail. */
  parse: (bytes, _fields, _onProgress, emit) => {
    emit(JSON.parse(Buffer.from(bytes).toString()), []);
    return { value: { apart: true } };
  },
  page: (bytes) => {
    const what = Buffer.from(bytes).toString();
    if (what === 'crash') process.abort();
    // A blocked thread handles no event, like one in an endless loop, but leaves the processor to other tests.
    if (what === 'hang') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    if (what === 'heap') fillHeap();
    if (what === 'buffers') fillBuffers();
    if (what === 'webassembly') fillWebAssembly();
    if (what === 'place') return { value: place() };
    return { value: what === 'confinement' ? confinement() : what };
  },
});

function place() {
  return { pid: process.pid, userId: process.getuid?.(), interfaces: Object.keys(networkInterfaces()) };
}

function fillHeap(): never {
  const kept: unknown[] = [];
  for (;;) kept.push(new Array(1000).fill(kept.length));
}

function fillBuffers(): never {
  const kept: Buffer[] = [];
  for (;;) kept.push(Buffer.alloc(1 << 20, 1));
}

function fillWebAssembly(): never {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65_536 });
  for (;;) {
    memory.grow(256);
    new Uint8Array(memory.buffer).fill(1);
  }
}

function confinement(): Record<string, string> {
  const attempt = (act: () => unknown): string => {
    try {
      act();
      return 'allowed';
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : (error as Error).message;
    }
  };
  return {
    environment: Object.keys(process.env).join(),
    readPasswd: attempt(() => readFileSync('/etc/passwd')),
    writeFile: attempt(() => writeFileSync('/tmp/quarry-parser-test', '')),
    spawn: attempt(() => spawn('true')),
    thread: attempt(() => new Worker('', { eval: true })),
    connect: attempt(() => net.connect(1)),
    fetch: typeof globalThis.fetch,
  };
}
