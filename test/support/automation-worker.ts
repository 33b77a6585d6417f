import { createServer } from '../../src/boot/server.ts';
import { createServices } from '../../src/boot/services.ts';
import { readConfig } from '../../src/config/config.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import { createLogger } from '../../src/lib/log.ts';

/*
 * A whole server on an existing database, for crash tests that kill it. Its argument is the database's address as
 * JSON; settings come from the environment.
 */
const config = readConfig();
const services = await createServices(config, createLogger('fatal'), {
  database: JSON.parse(process.argv[2] ?? 'null') as DatabaseTarget,
});
const server = await createServer(services);
await server.listen();
await services.startWorkers(server.work);
process.stdout.write('ready\n');
