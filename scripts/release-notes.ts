import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/*
 * Prints the notes of a release from CHANGELOG.md: node scripts/release-notes.ts VERSION
 * Fails if a file names another version, or if package.json still has a placeholder.
 */
const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** What is wrong with the files for a release of this version. */
export function findReleaseProblems(version: string, readFile = read): string[] {
  const chart = parse(readFile('deploy/helm/quarry/Chart.yaml')) as Record<string, unknown>;
  const values = parse(readFile('deploy/helm/quarry/values.yaml')) as { image: { tag: unknown } };
  const project = JSON.parse(readFile('package.json')) as Record<string, unknown>;
  const named: [file: string, version: unknown][] = [
    ['package.json', project.version],
    ['clients/tools/package.json', JSON.parse(readFile('clients/tools/package.json')).version],
    ['clients/python/pyproject.toml', /^version = "(.*)"$/m.exec(readFile('clients/python/pyproject.toml'))?.[1]],
    ['migrations/release.json', JSON.parse(readFile('migrations/release.json')).version],
    ['deploy/helm/quarry/Chart.yaml (version)', chart.version],
    ['deploy/helm/quarry/Chart.yaml (appVersion)', chart.appVersion],
    ['deploy/helm/quarry/values.yaml (image.tag)', values.image.tag],
  ];
  const problems = named.flatMap(([file, found]) =>
    found === version ? [] : [`${file} names ${found}, not ${version}`],
  );
  if (JSON.stringify(project).includes('/OWNER/')) problems.push('package.json names OWNER: see .github/RELEASING.md');
  if (readNotes(version, readFile) === undefined) problems.push(`CHANGELOG.md has no heading for ${version}`);
  return problems;
}

/** The section of a version, without its heading. */
export function readNotes(version: string, readFile = read): string | undefined {
  const sections = readFile('CHANGELOG.md').split(/^## /m);
  const section = sections.find((each) => each.split(/[\s\]]/)[0]?.replace('[', '') === version);
  return section?.slice(section.indexOf('\n')).trim();
}

if (import.meta.main) {
  const [version = ''] = process.argv.slice(2);
  const problems = findReleaseProblems(version);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.exit(1);
  process.stdout.write(`${readNotes(version)}\n`);
}
