import { type CommandResult, callQuarry } from './command.ts';
import type { TestServer } from './server.ts';
import { openTcpProxy } from './tcp-proxy.ts';

type Operator = {
  /** Runs one operator command to its end. */
  quarry(...args: string[]): Promise<CommandResult>;
  close(): Promise<void>;
};

/** Runs operator commands on the database, files and secret of a test server that keeps running. */
export async function operatorOf({ services, dataDir }: TestServer): Promise<Operator> {
  const proxy = await openTcpProxy(services.directTarget);
  const env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_LOG_LEVEL: 'silent',
    QUARRY_SECRET: services.config.secret ?? '',
    DATABASE_URL: proxy.url,
  };
  return { quarry: (...args) => callQuarry(args, { env }), close: () => proxy.close() };
}
