import { urlHost } from '../../boot/services.ts';
import { readConfig } from '../../config/config.ts';
import { limits } from '../../lib/limits.ts';

/** Checks that the configured server is ready, for example as a container's health check. Exit code 1 if not. */
export async function run({ only }: { only?: string | boolean | undefined } = {}): Promise<number> {
  const config = readConfig(undefined, typeof only === 'string' ? { QUARRY_ROLE: only } : {});
  const port = config.role === 'worker' ? config.workerPort : config.port;
  const url = `http://${urlHost(config.host)}:${port}/readyz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(limits.readinessTimeoutMs + 1_000) });
    process.stdout.write(`${url}: ${response.status} ${await response.text()}\n`);
    return response.status === 200 ? 0 : 1;
  } catch (error) {
    const { message, cause } = error as Error;
    process.stderr.write(
      `${url} does not respond: ${cause instanceof Error ? cause.message : message}.\n` +
        `Start the server, or set ${config.role === 'worker' ? 'QUARRY_WORKER_PORT' : 'PORT'} to the port that it has.\n`,
    );
    return 1;
  }
}
