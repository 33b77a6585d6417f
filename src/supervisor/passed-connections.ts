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
 * Closes the connections that were being passed to a process when it ended, so that their clients can retry.
 * `node:cluster` would keep them open, and their clients would wait forever.
 */
export function closeWithProcess(worker: Worker): void {
  const channel = worker.process as unknown as Channel;
  const inTransit = new Map<number, Handle>();
  const send = channel.send.bind(channel);
  channel.send = (message, handle, ...more) => {
    if (handle !== undefined && handle !== null && message.seq !== undefined) inTransit.set(message.seq, handle);
    return send(message, handle, ...more);
  };
  channel.on('internalMessage', ({ ack }) => {
    if (ack !== undefined) inTransit.delete(ack);
  });
  // `close` comes after `exit`, when every acknowledgement of the process has been read.
  channel.once('close', () => {
    for (const handle of inTransit.values()) handle.close();
  });
}
