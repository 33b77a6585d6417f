import { hash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * Add-ons: packages for features that not every server uses. `npm install` does not bring them; `quarry add` installs
 * exactly the versions that release-packages.json records. A clone has them all.
 */

/** A package of the release. `path` is where it is installed, below the directory of the add-on. */
export type RecordedPackage = { path: string; name: string; version: string; integrity: string };

type AddOn = {
  /** What it adds, for lists. */
  what: string;
  /** The packages that the code loads; release-packages.json adds what these need. */
  packages: string[];
  /** Of these packages, only the files that are used are installed. */
  keep?: Record<string, string[]>;
};

const definitions = {
  ocr: {
    what: 'text of scans and pictures, in English',
    packages: ['tesseract.js-core', '@tesseract.js-data/eng'],
    keep: {
      // Five more builds of the engine take 42 MB.
      'tesseract.js-core': ['LICENSE', 'package.json', 'tesseract-core-simd-lstm.js', 'tesseract-core-simd-lstm.wasm'],
      '@tesseract.js-data/eng': ['LICENSE', 'package.json', '4.0.0_best_int'],
    },
  },
  models: {
    what: 'language models of Anthropic and Google',
    packages: ['@ai-sdk/anthropic', '@ai-sdk/google'],
  },
  renderer: { what: 'pages that need a browser (QUARRY_RENDERER)', packages: ['playwright-core'] },
  s3: {
    what: 'files and backups in S3',
    packages: ['@aws-sdk/client-s3', '@aws-sdk/lib-storage', '@aws-sdk/s3-request-presigner'],
  },
  tracing: {
    what: 'traces for OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT)',
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
  },
} satisfies Record<string, AddOn>;

export type AddOnName = keyof typeof definitions;
export const addOns: Record<AddOnName, AddOn> = definitions;
export const addOnNames = Object.keys(definitions) as AddOnName[];

/** A feature is used whose add-on is not installed. */
export class AddOnMissing extends Error {
  constructor(name: AddOnName) {
    super(missingText(name));
    this.name = 'AddOnMissing';
  }
}

export function missingText(name: AddOnName): string {
  return `The add-on "${name}" (${addOns[name].what}) is not installed: run \`quarry add ${name}\`, then restart the server.`;
}

export const programRoot = fileURLToPath(new URL('../../', import.meta.url));

/** What `quarry bundle` writes archives for. */
export const bundlePlatforms = ['linux-arm64', 'linux-x64'] as const;
export type BundlePlatform = (typeof bundlePlatforms)[number];

type Recorded = {
  /** The packages of each add-on. */
  addOns: Record<AddOnName, RecordedPackage[]>;
  /** Members of npm's lock file, by path: what the program needs on every platform. */
  program: Record<string, object>;
};

/** The packages of this release. */
export function readRecordedPackages(): Recorded {
  return JSON.parse(readFileSync(join(programRoot, 'release-packages.json'), 'utf8')) as Recorded;
}

/** Where an image or a bundle has its add-ons: beside the program. */
export const programAddOns = join(programRoot, 'add-ons');

/** Where `quarry add` installs into a data directory. */
export function addOnsIn(dataDir: string): string {
  return join(dataDir, 'add-ons');
}

/**
 * The name of the directory of an add-on. It depends on the recorded versions, so a release never uses an add-on that
 * another release installed, and both can run on one data directory during an upgrade.
 */
export function addOnDirectoryName(name: AddOnName): string {
  const content = JSON.stringify([readRecordedPackages().addOns[name], addOns[name].keep]);
  return `${name}-${hash('sha256', content).slice(0, 16)}`;
}

/** The directory of an add-on, beside the program or in the data directory. */
export function findAddOnDirectory(name: AddOnName, dataDir: string): string | undefined {
  const found = [programAddOns, addOnsIn(dataDir)]
    .map((place) => join(place, addOnDirectoryName(name)))
    .find((directory) => existsSync(directory));
  return found && realpathSync(found);
}

/** Whether an add-on's packages are among those of the program: in a clone, or after `npm install` of each. */
export function isPartOfProgram(name: AddOnName): boolean {
  return addOns[name].packages.every((each) => findPackage(each) !== undefined);
}

export function isAddOnInstalled(name: AddOnName, dataDir: string): boolean {
  return isPartOfProgram(name) || findAddOnDirectory(name, dataDir) !== undefined;
}

const opened = new Map<AddOnName, NodeJS.Require>();

/**
 * Opens an add-on for this process. Loading a package of it returns the one of the program or of the add-on's directory.
 * @throws AddOnMissing
 */
export function openAddOn(name: AddOnName, dataDir: string): NodeJS.Require {
  const known = opened.get(name);
  if (known !== undefined) return known;
  const directory = isPartOfProgram(name) ? undefined : findAddOnDirectory(name, dataDir);
  if (directory === undefined && !isPartOfProgram(name)) throw new AddOnMissing(name);
  const load = requireFrom(directory);
  opened.set(name, load);
  return load;
}

/** An add-on that `openAddOn` opened, or that is part of the program. For modules that are loaded after that. */
export function useAddOn(name: AddOnName): NodeJS.Require {
  return opened.get(name) ?? requireFrom(undefined);
}

/** The directory of an installed package: of the program, or below the directory of an add-on. */
export function findPackage(name: string, directory?: string): string | undefined {
  const places = requireFrom(directory).resolve.paths(name) ?? [];
  return places.map((place) => join(place, name)).find((path) => isReadable(join(path, 'package.json')));
}

/**
 * Whether a file is there, in a parser process too: `existsSync` throws there for what is outside of the program, and
 * does not count the capability to read a directory of the server's user.
 */
export function isReadable(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function requireFrom(directory: string | undefined): NodeJS.Require {
  return createRequire(directory === undefined ? import.meta.url : directory + sep);
}
