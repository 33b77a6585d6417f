import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/*
 * `npm run sbom` prints the packages of a release with their licences, as CycloneDX. `npm sbom --omit dev` would also
 * leave out what a development dependency needs too, such as Fastify; so npm gets a copy of the lock file without them.
 */

type Lock = { packages: Record<string, { dev?: boolean; link?: boolean; devDependencies?: object }> };

export function createSbom(): string {
  const root = join(import.meta.dirname, '..');
  const directory = mkdtempSync(join(tmpdir(), 'quarry-sbom-'));
  try {
    // npm names the described component after its folder.
    const project = join(directory, 'quarry');
    mkdirSync(project);
    const { devDependencies: _, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
    delete lock.packages['']?.devDependencies;
    for (const [path, { dev, link }] of Object.entries(lock.packages)) if (dev || link) delete lock.packages[path];
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

if (import.meta.main) process.stdout.write(createSbom());
