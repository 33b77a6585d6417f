import { readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { createDirectories } from '../../lib/directories.ts';
import { writePrivateFile } from '../../lib/private-file.ts';

/** The server and credential that `quarry login` stores for later commands. */
export type Profile = {
  url: string;
  key?: string;
  token?: string;
  /** The app and sandbox that a developer token acts in. */
  app?: string;
  sandbox?: string;
  /** A personal token that the login created, and that the logout revokes. */
  created?: { user: string; token: string };
};

export function profilePath({ profile }: Config): string {
  return profile ?? join(homedir(), '.config', 'quarry', 'profile.json');
}

/** The stored profile; undefined if there is none or the file is damaged. */
export function findProfile(config: Config): Profile | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(profilePath(config), 'utf8'));
    return isProfile(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

export function writeProfile(config: Config, profile: Profile): void {
  const path = profilePath(config);
  createDirectories(dirname(path), 0o700);
  writePrivateFile(path, `${JSON.stringify(profile, null, 2)}\n`);
}

export function removeProfile(config: Config): void {
  rmSync(profilePath(config), { force: true });
}

function isProfile(content: unknown): content is Profile {
  if (typeof content !== 'object' || content === null) return false;
  const { url, key, token } = content as Record<string, unknown>;
  return typeof url === 'string' && URL.canParse(url) && (typeof key === 'string' || typeof token === 'string');
}
