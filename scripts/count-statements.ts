import { join } from 'node:path';
import { type Node, SyntaxKind } from 'tsc/unstable/ast';
import { API } from 'tsc/unstable/sync';

/*
 * Prints how many statements the compiler finds in `src`, of which a change that simplifies takes some away. Blocks do
 * not count: their statements do.
 */
const root = join(import.meta.dirname, '..');
const api = new API({ cwd: root });
const { program } = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0] ?? {};
let statements = 0;
for (const name of program?.getSourceFileNames() ?? [])
  if (name.startsWith(join(root, 'src', '/'))) program?.getSourceFile(name)?.forEachChild(count);
console.log(statements);
api.close();

function count(node: Node): void {
  const kind = SyntaxKind[node.kind] ?? '';
  const declares = /^(?:Import|Export|Function|Class|Interface|TypeAlias|Module)Declaration$/.test(kind);
  if (declares || kind === 'FirstStatement' || (kind.endsWith('Statement') && kind !== 'LastStatement'))
    statements += 1;
  node.forEachChild(count);
}
