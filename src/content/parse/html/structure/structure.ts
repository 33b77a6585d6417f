import type { HtmlElement } from '../tree.ts';
import { plainAdmonitions } from './admonitions.ts';
import { plainCode } from './code.ts';
import { plainNotes } from './footnotes.ts';
import { plainFormulas } from './formulas.ts';
import { plainHeadings } from './headings.ts';
import { placeMisplaced } from './misplaced.ts';
import { plainTables } from './tables.ts';
import { plainTabs } from './tabs.ts';
import { plainTools } from './tools.ts';

/**
 * Moves text that stands where HTML allows none, and rewrites what generators of documentation write around code,
 * headings, tabs, tables, notes and formulas as plain elements: what is left has neither line numbers, buttons and
 * permalinks, nor names by which it could be taken for something else than text. Changes the tree. Runs before it is
 * decided which parts of a page are its text.
 */
export function plainStructure(root: HtmlElement): void {
  placeMisplaced(root);
  plainTools(root);
  plainFormulas(root);
  plainCode(root);
  plainHeadings(root);
  plainTabs(root);
  plainTables(root);
  plainAdmonitions(root);
  plainNotes(root);
}
