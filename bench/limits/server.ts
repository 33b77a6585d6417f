/** One of the two servers that bench/limits.ts compares; prints its URL. */

import { AuditLog } from '../../src/audit/log.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import { openDatabase } from '../../src/db/database.ts';
import { Intake } from '../../src/http/body/intake.ts';
import { Metrics } from '../../src/http/metrics.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Credentials } from '../../src/tenancy/credentials.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { Sessions } from '../../src/tenancy/sessions.ts';
import { generousLimiter } from './limiter.ts';

const db = openDatabase(JSON.parse(process.env.BENCH_DATABASE ?? '') as DatabaseTarget, {
  poolSize: 4,
  applicationName: 'bench',
});
const log = createLogger('warn');
const secrets = new Secrets(process.env.BENCH_SECRET ?? '');
const credentials = new Credentials({ db, secrets, clock: systemClock });
const { fastify, api } = await createHttpServer({
  log,
  credentials,
  sessions: new Sessions({ db, directory: db, secrets, clock: systemClock, credentials }),
  metrics: new Metrics(),
  intake: new Intake({ clock: systemClock, memoryBytesMax: 256 * 1024 * 1024 }),
  ...(process.argv[2] === 'with'
    ? {
        rateLimiter: generousLimiter(db),
        audit: new AuditLog({ db, directory: db, clock: systemClock, log, keep: 'changes' }),
      }
    : {}),
  bodyBytesMax: 1024,
  corsOrigins: ['*'],
  contentOrigin: undefined,
  trustProxy: [],
});
// The cheapest possible operation, so that the measured cost is as large a share as possible.
api.app(['user', 'server'], {
  method: 'GET',
  path: '/nothing',
  operationId: 'getNothing',
  tag: 'Server',
  summary: 'Nothing',
  responses: { 200: null },
  handler: () => null,
});
console.log(await fastify.listen({ host: '127.0.0.1', port: 0 }));
