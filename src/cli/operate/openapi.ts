import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from '../../boot/server.ts';
import { createUnconnectedServices } from '../../boot/services.ts';
import { readConfig } from '../../config/config.ts';
import { createLogger } from '../../lib/log.ts';

/** Prints the OpenAPI document; needs neither a database nor settings. */
export async function run(options: { out?: string | boolean | undefined }): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-openapi-'));
  const services = await createUnconnectedServices(readConfig({ QUARRY_DATA_DIR: dataDir }), createLogger('error'));
  try {
    const { fastify } = await createServer(services);
    await fastify.ready();
    const text = `${JSON.stringify(await fastify.writeOpenApi(), null, 2)}\n`;
    if (typeof options.out === 'string') writeFileSync(options.out, text);
    else process.stdout.write(text);
    return 0;
  } finally {
    await services.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
