import { type CommandResult, callQuarry } from './command.ts';
import type { TestServer } from './server.ts';
import { openTcpProxy } from './tcp-proxy.ts';

type Operator = {
  /** Runs one command of the operator to its end. */
  quarry(...args: string[]): Promise<CommandResult>;
  close(): Promise<void>;
};

/** Runs the commands of an operator on the database, the files and the secret of a test server, which keeps running. */
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
