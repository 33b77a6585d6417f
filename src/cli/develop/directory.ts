import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { type Position, readLocatedText } from '../../automations/definitions/located-text.ts';
import { limits } from '../../lib/limits.ts';
import { suggestNearest } from '../../lib/nearest.ts';
import { UsageError } from '../errors.ts';
import { type Kind, kinds, type Values, writeOnly } from './kinds.ts';
import { mapStrings, referencesIn, replaceReferences, takesEnvironment, withoutEnvironment } from './references.ts';

/** A mistake in a file, as `file:line:col: message`. */
export type Problem = Position & { file: string; message: string };

export function describeProblem({ file, line, column, message }: Problem): string {
  return `${file}:${line}:${column}: ${message}`;
}

/** A resource as its file describes it. */
export type Described = {
  kind: Kind;
  key: string;
  file: string;
  /** With the values of the environment. Other references are still in it. */
  values: Values;
  /** As written: what the environment provides is never shown. */
  written: Values;
  locate(path: readonly (string | number)[]): Position;
};

/** A text for a path of the app. */
export type ConfigFile = { path: string; file: string; content: string };

/** The value of an environment variable. */
type Environment = (name: string) => string | undefined;

export type Directory = { name: string; resources: Described[]; configs: ConfigFile[]; problems: Problem[] };

const filesMax = 10_000;
const fileBytesMax = 4 * 1024 * 1024;
const credential = /\b(?:sk|rt|dvt|sat|whsec)_[A-Za-z0-9_+/-]{16,}/;

/** Reads a directory and checks its files without a server. */
export function readDirectory(root: string, environment: Environment): Directory {
  if (!existsSync(root) || !lstatSync(root).isDirectory()) throw new UsageError(`${root} is not a directory.`);
  const problems: Problem[] = [];
  const resources = kinds.flatMap((kind) =>
    listFiles(join(root, kind.folder))
      .filter((path) => /\.(?:ya?ml|json)$/.test(path))
      .flatMap((path) => readResource(kind, path, environment, problems)),
  );
  problems.push(...findDuplicates(resources), ...findMistypedFolders(root));
  const configs = listFiles(join(root, 'configs')).flatMap((path) => readConfig(join(root, 'configs'), path, problems));
  return { name: readName(root, problems), resources, configs, problems };
}

/** Folders that are not read, and whose names are nearly those of folders that are. Others may be anything. */
function findMistypedFolders(root: string): Problem[] {
  const read = ['configs', ...kinds.map((kind) => kind.folder)];
  const others = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !read.includes(entry.name),
  );
  return others.flatMap(({ name }) => {
    const hint = suggestNearest(name, read);
    return hint === '' ? [] : [{ file: join(root, name), line: 1, column: 1, message: `is not read${hint}` }];
  });
}

/** The name under which `apply` records what it created: that of `quarry.yaml`, or `default`. */
function readName(root: string, problems: Problem[]): string {
  const file = join(root, 'quarry.yaml');
  if (!existsSync(file)) return 'default';
  const { text, problems: faults } = readLocatedText(readFileSync(file, 'utf8'));
  problems.push(...faults.map((fault) => ({ ...fault, file })));
  const { name = 'default', ...rest } = (text?.value ?? {}) as Values;
  const unknown = Object.keys(rest)[0];
  if (text && unknown !== undefined)
    problems.push({ ...text.locate([unknown]), file, message: `${unknown} is not a known member` });
  if (typeof name === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name)) return name;
  if (text)
    problems.push({ ...text.locate(['name']), file, message: 'name must be letters, digits, ".", "_" and "-"' });
  return 'default';
}

/** The regular files below a directory, in the order of their names. Links are not followed. */
export function listFiles(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const entries = readdirSync(directory, { withFileTypes: true, recursive: true });
  const paths = entries.filter(isSource).map((entry) => join(entry.parentPath, entry.name));
  if (paths.length > filesMax) throw new UsageError(`${directory} has more than ${filesMax} files.`);
  return paths.sort();
}

function isSource(entry: Dirent): boolean {
  return entry.isFile() && !/^(?:\.DS_Store|\.gitkeep|.*~|\..*\.sw[a-z])$/.test(entry.name);
}

function readText(file: string, problems: Problem[]): string | undefined {
  const refuse = (message: string) => void problems.push({ file, line: 1, column: 1, message });
  if (lstatSync(file).size > fileBytesMax) return refuse(`is larger than ${fileBytesMax} bytes`) as undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
  } catch {
    return refuse('is not a text in UTF-8') as undefined;
  }
}

function readConfig(root: string, file: string, problems: Problem[]): ConfigFile[] {
  const content = readText(file, problems);
  const path = relative(root, file).split(sep).join('/');
  if (content === undefined) return [];
  if (Buffer.byteLength(content) > limits.configTextBytesMax)
    problems.push({ file, line: 1, column: 1, message: `is larger than ${limits.configTextBytesMax} bytes` });
  return [{ path, file, content }];
}

function readResource(kind: Kind, file: string, environment: Environment, problems: Problem[]): Described[] {
  const source = readText(file, problems);
  if (source === undefined) return [];
  const { text, problems: faults } = readLocatedText(source);
  if (!text) {
    problems.push(...faults.map((fault) => ({ ...fault, file })));
    return [];
  }
  const report = (path: readonly (string | number)[], message: string) =>
    problems.push({ ...text.locate(path), file, message });
  if (typeof text.value !== 'object' || text.value === null || Array.isArray(text.value)) {
    report([], `must be a map that describes one ${kind.name}`);
    return [];
  }
  const written = text.value as Values;
  checkSecrets(kind, written, report);
  const values = mapStrings(written, (one, path) =>
    replaceReferences(one, ['env'], (_, name) => {
      const value = environment(name);
      if (value === undefined) report(path, `the environment variable ${name} is not set`);
      return value;
    }),
  ) as Values;
  const { status, ...body } = values;
  if (kind.status === undefined && status !== undefined) report(['status'], 'status is not a known member');
  if (kind.status !== undefined && status !== undefined && !(String(status) in kind.status.requests))
    report(['status'], `status must be ${Object.keys(kind.status.requests).join(' or ')}`);
  for (const { path, node, message } of kind.check(body))
    report(path, node === undefined ? message : `node "${node}": ${message}`);
  const key = values[kind.key];
  if (key === undefined || key === null) {
    if (kind.key !== 'issuer') report([], `${kind.key} is missing: it identifies the ${kind.name}`);
    return [];
  }
  return [{ kind, key: String(key), file, values, written, locate: text.locate }];
}

/** Files contain no secrets: they are taken from the environment. */
function checkSecrets(kind: Kind, written: Values, report: (path: (string | number)[], message: string) => void): void {
  mapStrings(written, (text, path) => {
    const isWriteOnly = kind.name === writeOnly.kind && path.join('.') === writeOnly.path.join('.');
    if (isWriteOnly ? !takesEnvironment(text) : credential.test(withoutEnvironment(text)))
      report(path, `${path.at(-1) ?? 'the value'} is a secret: write \${env:NAME} and set the variable`);
    for (const { kind: wanted, name } of referencesIn(text))
      if (name === '') report(path, `\${${wanted}:} names nothing`);
    return text;
  });
}

function findDuplicates(resources: Described[]): Problem[] {
  const seen = new Map<string, string>();
  return resources.flatMap(({ kind, key, file, locate }) => {
    const id = `${kind.name} ${key}`;
    const first = seen.get(id);
    seen.set(id, first ?? file);
    return first === undefined ? [] : [{ ...locate([kind.key]), file, message: `"${key}" is also in ${first}` }];
  });
}
