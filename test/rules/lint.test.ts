import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { projectRoot } from '../support/source.ts';

/*
 * `npm run check` runs Biome over the project. This test shows that the rules we rely on are turned on in biome.json.
 */
const broken: [rule: string, file: string, text: string][] = [
  ['nursery/noFloatingPromises', 'src/floating.ts', 'async function save(): Promise<void> {}\nsave();\n'],
  ['suspicious/noImportCycles', 'src/one.ts', "import { two } from './two.ts';\nexport const one = () => two;\n"],
  [
    'suspicious/noImportCycles',
    'src/two.ts',
    "import type { one } from './one.ts';\nexport const two: typeof one | 2 = 2;\n",
  ],
  ['style/useFilenamingConvention', 'src/camelCase.ts', 'export const name = 1;\n'],
  ['style/useFilenamingConvention', 'test/snake_case.test.ts', 'export const name = 1;\n'],
  ['style/useFilenamingConvention', 'console/src/PascalCase.tsx', 'export const name = 1;\n'],
  ['style/noProcessEnv', 'src/setting.ts', 'export const port = process.env.PORT;\n'],
  ['style/noRestrictedImports', 'src/process.ts', "export { env } from 'node:process';\n"],
  ['style/noExcessiveLinesPerFile', 'src/long.ts', 'Date.now();\n'.repeat(501)],
  ['suspicious/noExplicitAny', 'src/escape.ts', 'export const read = (value: unknown) => (value as any).name;\n'],
];
const allowed: [file: string, text: string][] = [
  ['src/config/config.ts', 'export const port = process.env.PORT;\n'],
  ['src/config/env-file.ts', 'export const port = process.env.PORT;\n'],
  ['test/settings.test.ts', 'export const port = process.env.PORT;\n'],
  ['src/not-long.ts', 'Date.now();\n'.repeat(500)],
];

test('Biome reports every broken convention and no allowed file', () => {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'quarry-lint-'));
  try {
    cpSync(join(projectRoot, 'biome.json'), join(directory, 'biome.json'));
    for (const [file, text] of [...broken.map(([, ...rest]) => rest), ...allowed]) {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), text);
    }
    const reported = lint(directory);
    assert.deepEqual(reported.sort(), broken.map(([rule, file]) => `${file}: lint/${rule}`).sort());
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

function lint(directory: string): string[] {
  const biome = join(projectRoot, 'node_modules/@biomejs/biome/bin/biome');
  const options = ['lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=100', '.'];
  const { stdout } = spawnSync(process.execPath, [biome, ...options], { cwd: directory, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { category: string; location: { path: string } }[] };
  return diagnostics.map(({ category, location }) => `${location.path}: ${category}`);
}
