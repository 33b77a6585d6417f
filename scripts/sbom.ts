import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addOnNames, addOns, readRecordedPackages } from '../src/lib/add-ons.ts';

/*
 * `npm run sbom` prints the packages of a release with their licences, as CycloneDX. `npm sbom --omit dev` would also
 * leave out what a development dependency needs too, such as Fastify; so npm gets a copy of the lock file without them.
 * The packages of add-ons belong to a release; they are development dependencies only because a clone needs them.
 */

type Lock = {
  packages: Record<string, { dev?: boolean; link?: boolean; dependencies?: object; devDependencies?: object }>;
};

export function createSbom(): string {
  const root = join(import.meta.dirname, '..');
  const directory = mkdtempSync(join(tmpdir(), 'quarry-sbom-'));
  try {
    // npm names the described component after its folder.
    const project = join(directory, 'quarry');
    mkdirSync(project);
    const { devDependencies, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
    const added = new Set(Object.values(readRecordedPackages().addOns).flatMap((tree) => tree.map(({ path }) => path)));
    for (const [path, entry] of Object.entries(lock.packages))
      if (added.has(path)) delete entry.dev;
      else if (entry.dev || entry.link) delete lock.packages[path];
    const roots = addOnNames.flatMap((name) => addOns[name].packages);
    manifest.dependencies = { ...manifest.dependencies, ...pick(devDependencies, roots) };
    lock.packages[''] = { ...lock.packages[''], dependencies: manifest.dependencies };
    delete lock.packages[''].devDependencies;
    writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(project, 'package-lock.json'), JSON.stringify(lock));
    const options = ['--sbom-format', 'cyclonedx', '--package-lock-only'];
    return execFileSync('npm', ['sbom', ...options], {
      cwd: project,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function pick(from: Record<string, string>, names: string[]) {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

if (import.meta.main) process.stdout.write(createSbom());
