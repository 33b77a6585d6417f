import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Document, OptionalPart } from '../model.ts';

/** A theme of a generator, or a layout written by hand. */
export type Theme = {
  name: string;
  generator: string;
  version: string;
  theme: string;
  /** Of the theme, whose markup the pages contain. */
  licence: string;
  byHand?: boolean;
  /** Parts that the generator does not have, or whose source its pages do not contain. */
  lacks?: OptionalPart[];
  /** The code of several languages is in one block, and its pages show no labels. */
  unlabelledTabs?: boolean;
  /** The address of a page, on which its fragments depend. */
  url: (document: string) => string;
  /** Renders the documents to whole pages, in order. */
  render: (documents: Document[], place: { tools: string; work: string }) => string[];
};

/** Empties a folder and writes these files into it. */
export function writeSite(folder: string, files: Record<string, string>): void {
  rmSync(folder, { recursive: true, force: true });
  writeFiles(folder, files);
}

export function writeFiles(folder: string, files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

export function run(folder: string, command: string, ...parameters: string[]): void {
  const { status, stdout, stderr } = spawnSync(command, parameters, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, ASTRO_TELEMETRY_DISABLED: '1', CI: '1' },
  });
  if (status !== 0) throw new Error(`${command} failed:\n${stdout}\n${stderr}`);
}
