import { bootstrapIfEmpty, mintCredentials } from '../../apps/bootstrap.ts';
import {
  type CredentialsFile,
  credentialsFile,
  findCredentialsFile,
  writeCredentialsFile,
} from '../../boot/credentials-file.ts';
import { readOrCreateSecret, urlHost } from '../../boot/services.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { migrate } from '../../db/migrate.ts';
import { createLogger } from '../../lib/log.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { withDatabase } from './with-database.ts';

/** Prints new credentials of the first app, which is created in an empty database. */
export async function run(options: { json?: string | boolean | undefined }): Promise<number> {
  const config = readConfig();
  const content = await withDatabase(config, createLogger(config.logLevel), async (db): Promise<CredentialsFile> => {
    await migrate(db);
    const secrets = new Secrets(config.secret ?? readOrCreateSecret(config.dataDir), config.secretPrevious);
    const baseUrl = findBaseUrl(config);
    const first = await bootstrapIfEmpty(db, secrets, (made) =>
      writeCredentialsFile(config.dataDir, credentialsFile(baseUrl, made)),
    );
    const credentials = first ?? (await mintCredentials(db));
    if (!credentials) throw new Error('No developer has an app. Create one with the developer token.');
    return credentialsFile(baseUrl, credentials);
  });
  const text = options.json
    ? JSON.stringify(content, null, 2)
    : Object.entries(content)
        .map(([name, value]) => `${name.padEnd(16)} ${value}`)
        .join('\n');
  process.stdout.write(`${text}\n`);
  return 0;
}

/** A running server writes its URL to credentials.json. Otherwise, the settings say where it will listen. */
function findBaseUrl(config: Config): string {
  const noted = findCredentialsFile(config.dataDir)?.base_url;
  return config.publicUrl ?? noted ?? `http://${urlHost(config.host)}:${config.port}`;
}
