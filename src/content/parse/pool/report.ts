import type { Config } from '../../../config/config.ts';
import type { Logger } from '../../../lib/log.ts';
import { findConfinement } from './confinement.ts';
import { ownWorkerFile } from './process.ts';

/** Logs which walls the system has put around the parser processes, and what that means for documents. */
export function reportConfinement({ parseNetwork }: Pick<Config, 'parseNetwork'>, log: Logger): void {
  const { network, userId, limits } = findConfinement(ownWorkerFile);
  const walls = {
    network: network ? 'isolated' : 'shared',
    user: userId ?? 'own',
    limits: limits ? 'of the system' : 'none of the system',
  };
  if (network) log.info({ walls }, 'Parsers are confined');
  else if (parseNetwork === 'shared') log.warn({ walls }, 'Parsers share the network of this process');
  else log.error({ walls }, 'No documents are read: parsers would share the network (QUARRY_PARSE_NETWORK)');
}
