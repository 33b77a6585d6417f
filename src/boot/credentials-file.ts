import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AppCredentials } from '../apps/bootstrap.ts';
import { writePrivateFile } from '../lib/private-file.ts';

/** The contents of `credentials.json` and the output of `quarry credentials --json`. */
export type CredentialsFile = {
  base_url: string;
  app: string;
  developer_token: string;
  secret_key: string;
  publishable_key: string;
};

export function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json');
}

export function credentialsFile(baseUrl: string, credentials: AppCredentials): CredentialsFile {
  return {
    base_url: baseUrl,
    app: credentials.app,
    developer_token: credentials.developerToken,
    secret_key: credentials.secretKey,
    publishable_key: credentials.publishableKey,
  };
}

export function writeCredentialsFile(dataDir: string, content: CredentialsFile): void {
  writePrivateFile(credentialsPath(dataDir), `${JSON.stringify(content, null, 2)}\n`);
}

/** Reads the credentials of the first start. Undefined if the file is missing or damaged. */
export function findCredentialsFile(dataDir: string): CredentialsFile | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(credentialsPath(dataDir), 'utf8'));
    return isCredentialsFile(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

function isCredentialsFile(content: unknown): content is CredentialsFile {
  if (typeof content !== 'object' || content === null) return false;
  const { base_url: url, ...rest } = content as Record<string, unknown>;
  const { app, developer_token, secret_key, publishable_key } = rest;
  return (
    typeof url === 'string' &&
    URL.canParse(url) &&
    [app, developer_token, secret_key, publishable_key].every((each) => typeof each === 'string')
  );
}
