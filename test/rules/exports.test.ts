import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSources, type Source } from '../support/source.ts';

/*
 * An export that no other file imports is either unused or needs no `export`. Files that are loaded by a dynamic
 * import are left out, because what is taken from them is not written in one form. The package exports src/index.ts.
 */
function needlessExports(sources: Source[]): string[] {
  const used = new Map<string, Set<string>>();
  const loaded = new Set<string>();
  const use = (file: string, name: string) => used.set(file, (used.get(file) ?? new Set()).add(name));
  for (const { name: file, text } of sources) {
    const target = (path: string) => join(file, '..', path);
    for (const [, clause = '', path = ''] of text.matchAll(/(?:import|export)\s+([^;'"]*?)\s+from\s+'(\.[^']+)'/g)) {
      const [, namespace] = /\*\s+as\s+(\w+)/.exec(clause) ?? [];
      if (namespace)
        for (const [, member = ''] of text.matchAll(new RegExp(`\\b${namespace}\\s*\\.(\\w+)`, 'g')))
          use(target(path), member);
      else if (clause.trim() === '*') loaded.add(target(path));
      for (const member of (/\{(.*)\}/s.exec(clause)?.[1] ?? '').split(','))
        use(
          target(path),
          member
            .trim()
            .replace(/^type\s+/, '')
            .split(' as ')[0] ?? '',
        );
    }
    for (const [, path = ''] of text.matchAll(/import\(\s*'(\.[^']+)'\s*\)/g)) loaded.add(target(path));
  }
  const declaration = /^export (?:async )?(?:function\*?|const|let|class|type) (\w+)/gm;
  return sources
    .filter(
      ({ name }) =>
        name !== 'src/index.ts' &&
        !loaded.has(name) &&
        !name.endsWith('/generated.ts') &&
        !name.startsWith('test/fixtures/'),
    )
    .flatMap(({ name, text }) =>
      [...text.matchAll(declaration)]
        .map(([, exported = '']) => exported)
        .filter((exported) => !used.get(name)?.has(exported))
        .map((exported) => `${name}: ${exported}`),
    );
}

test('everything that is exported is imported somewhere', () => {
  const sources = readSources('src', 'test', 'bench', 'scripts', 'console/src');
  assert.deepEqual(needlessExports(sources), [], 'Remove the word export, or what nothing uses.');

  const sample = [
    { name: 'src/a.ts', text: 'export const one = 1;\nexport type Two = 2;\nexport function three() {}\n' },
    { name: 'src/b.ts', text: "import { one } from './a.ts';\nimport * as a from './a.ts';\na.three();\n" },
  ];
  assert.deepEqual(needlessExports(sample), ['src/a.ts: Two']);
});
