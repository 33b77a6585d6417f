import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { withinTime } from '../../src/lib/clock.ts';

/** Sends each byte back, and says so to a thread that looks at nothing else. */
const echo = `
  const { parentPort, workerData } = require('node:worker_threads');
  require('node:net').createServer((socket) => socket.on('data', (data) => socket.write(data, () => {
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  }))).listen(0, '127.0.0.1', function () { parentPort.postMessage(this.address().port) })`;

test('a response that came while the event loop was busy is in time, and none is late', async () => {
  const sent = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(echo, { eval: true, workerData: sent });
  try {
    const [port] = await once(worker, 'message');
    const client = connect(port, '127.0.0.1');
    await once(client, 'connect');
    const checked = withinTime(1, once(client, 'data'));
    client.write('a');
    Atomics.wait(sent, 0, 0);
    // Keeps the loop busy beyond the deadline.
    Atomics.wait(sent, 0, 1, 5);
    assert.equal(String((await checked)[0]), 'a');
    await assert.rejects(withinTime(1, once(client, 'data')), /in time/);
    client.destroy();
  } finally {
    await worker.terminate();
  }
});
