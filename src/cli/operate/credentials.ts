import { type AppCredentials, bootstrapIfEmpty, mintCredentials } from '../../apps/bootstrap.ts';
import {
  type CredentialsFile,
  credentialsFile,
  findCredentialsFile,
  writeCredentialsFile,
} from '../../boot/credentials-file.ts';
import { readOrCreateSecret, urlHost } from '../../boot/services.ts';
import { type CellSettings, readCells } from '../../cells/settings.ts';
import { withCell } from '../../cells/status.ts';
import { findFirstPlace } from '../../cells/store.ts';
import { type Config, readConfig } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import { migrate } from '../../db/migrate.ts';
import { createLogger } from '../../lib/log.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { UsageError } from '../errors.ts';
import { withDatabase } from './with-database.ts';

/** Prints new credentials of the first app, which is created in an empty database. */
export async function run(options: { json?: string | boolean | undefined }): Promise<number> {
  const config = readConfig();
  const content = await withDatabase(config, createLogger(config.logLevel), async (db): Promise<CredentialsFile> => {
    await migrate(db);
    const baseUrl = findBaseUrl(config);
    const credentials = await makeCredentials(db, config, baseUrl);
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

async function makeCredentials(db: Database, config: Config, baseUrl: string): Promise<AppCredentials | undefined> {
  const cells = readCells(config);
  if (cells?.every(({ target }) => target !== undefined)) return mintInCell(db, cells);
  const secrets = new Secrets(config.secret ?? readOrCreateSecret(config.dataDir), config.secretPrevious);
  const first = await bootstrapIfEmpty(db, secrets, (made) =>
    writeCredentialsFile(config.dataDir, credentialsFile(baseUrl, made)),
  );
  return first ?? mintCredentials(db);
}

/** The directory is not a cell: a server creates the first app when it has opened a cell. */
async function mintInCell(directory: Database, cells: readonly CellSettings[]): Promise<AppCredentials | undefined> {
  const app = await findFirstPlace(directory);
  if (app === undefined) throw new UsageError('There is no app yet. The first `quarry serve` creates it in a cell.');
  const cell = cells.find(({ name }) => name === app.cell);
  if (cell === undefined) throw new UsageError(`QUARRY_CELLS has no cell ${app.cell}, where the first app is.`);
  return withCell(cell, directory, (db) => mintCredentials(db, { directory, appId: app.appId }));
}

/** A running server writes its URL to credentials.json. Otherwise, the settings say where it will listen. */
function findBaseUrl(config: Config): string {
  const noted = findCredentialsFile(config.dataDir)?.base_url;
  return config.publicUrl ?? noted ?? `http://${urlHost(config.host)}:${config.port}`;
}
