import cluster from 'node:cluster';
import { findCredentialsFile } from '../boot/credentials-file.ts';
import { startServing } from '../boot/serving.ts';
import { Metrics } from '../http/metrics.ts';
import { defined } from '../lib/defined.ts';
import { createLogger } from '../lib/log.ts';
import { traceIds } from '../tracing/trace.ts';
import type { Assignment, FromChild, FromSupervisor } from './messages.ts';

/** Runs one process of a supervisor. When the supervisor ends, the channel between them closes, and the process ends too. */
export async function runChild(stopAsked: Promise<unknown>, collectGarbage: () => void): Promise<void> {
  try {
    await runAssigned(stopAsked, collectGarbage);
  } finally {
    // The open channel would keep the process running; Node would end it before its last lines are written.
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
    if (process.connected) process.disconnect();
  }
}

async function runAssigned(stopAsked: Promise<unknown>, collectGarbage: () => void): Promise<void> {
  const metrics = new SharedMetrics();
  const assigned = Promise.withResolvers<Assignment>();
  const stopTold = Promise.withResolvers<void>();
  process.on('message', (message: FromSupervisor) => {
    if (message.type === 'start') assigned.resolve(message.assignment);
    else if (message.type === 'stop') stopTold.resolve();
    else if (message.type === 'look') send({ type: 'alive' });
    else if (message.type === 'metrics') metrics.receive(message.text);
    else void metrics.snapshot().then((snapshot) => send({ type: 'measured', snapshot }));
  });
  const { config, database, listeningUrl } = await assigned.promise;
  const log = createLogger(config.logLevel, config.otlpEndpoint === undefined ? undefined : traceIds);
  const running = await startServing(config, log, {
    metrics,
    ...defined({ database, listeningUrl }),
  });
  const { url, baseUrl, credentials, createSignInLink } = running;
  const token = credentials === undefined ? undefined : findCredentialsFile(config.dataDir)?.developer_token;
  const signInCode = token === undefined ? undefined : (await createSignInLink(token))?.code;
  collectGarbage();
  send({ type: 'started', started: { url, baseUrl, credentials, signInCode } });
  await Promise.race([stopAsked, stopTold.promise]);
  await running.close();
}

function send(message: FromChild): void {
  // The supervisor may have ended; this process then ends too.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Shows the sum over the processes, which the supervisor collects. */
class SharedMetrics extends Metrics {
  #waiting: PromiseWithResolvers<string> | undefined;

  override text(): Promise<string> {
    if (this.#waiting === undefined) {
      this.#waiting = Promise.withResolvers();
      send({ type: 'read-metrics' });
    }
    return this.#waiting.promise;
  }

  receive(text: string | undefined): void {
    if (text === undefined) this.#waiting?.reject(new Error('The supervisor could not collect the metrics.'));
    else this.#waiting?.resolve(text);
    this.#waiting = undefined;
  }
}
