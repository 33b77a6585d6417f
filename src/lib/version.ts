import { readFileSync } from 'node:fs';

const file = new URL('../../package.json', import.meta.url);
const project = JSON.parse(readFileSync(file, 'utf8')) as { version: string };

/** The release, as package.json names it. */
export const version = project.version;
