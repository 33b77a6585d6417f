import type { Worker } from 'node:cluster';

type Handle = { close(): void };
/** What `node:cluster` passes to a process: a connection is acknowledged by its number. */
type ClusterMessage = { seq?: number; ack?: number };
type Channel = {
  send(message: ClusterMessage, handle?: Handle, ...more: unknown[]): boolean;
  on(event: 'internalMessage', hear: (message: ClusterMessage) => void): void;
  once(event: 'close', hear: () => void): void;
};

/**
 * Closes the connections that were on their way to a process when it ended, so that their clients can retry.
 * `node:cluster` keeps them open forever, and their clients would wait for a response that nobody sends.
 */
export function closeWithProcess(worker: Worker): void {
  const channel = worker.process as unknown as Channel;
  const onTheirWay = new Map<number, Handle>();
  const send = channel.send.bind(channel);
  channel.send = (message, handle, ...more) => {
    if (handle !== undefined && handle !== null && message.seq !== undefined) onTheirWay.set(message.seq, handle);
    return send(message, handle, ...more);
  };
  channel.on('internalMessage', ({ ack }) => {
    if (ack !== undefined) onTheirWay.delete(ack);
  });
  // After `exit`, when every acknowledgement that it sent has been read.
  channel.once('close', () => {
    for (const handle of onTheirWay.values()) handle.close();
  });
}
