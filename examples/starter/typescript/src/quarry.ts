import { readFileSync } from 'node:fs';
import { Quarry } from '@quarry/client';

/** The server of `quarry dev` in this directory, or the one that the environment names. */
export function connect(): Quarry {
  const { QUARRY_API_URL: baseUrl, QUARRY_API_KEY: key } = process.env;
  if (baseUrl !== undefined && key !== undefined) return new Quarry({ baseUrl, key });
  const own = JSON.parse(readFileSync('data/credentials.json', 'utf8')) as { base_url: string; secret_key: string };
  return new Quarry({ baseUrl: own.base_url, key: own.secret_key });
}
