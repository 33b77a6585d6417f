import { hash } from 'node:crypto';
import { boxLimits, type PageBox } from '../../page-boxes.ts';
import type { Block } from '../write-markdown.ts';
import type { HtmlElement } from './tree.ts';

/** A block as it was written, and the element that it stands in. */
export type PlacedBlock = { block: Block; box: HtmlElement | undefined; start: number; end: number };

/** Text that stays wherever it stands. */
const rights = /licen[cs]|copyright|©|creative commons|all rights reserved/i;

/** The boxes of a text in order: runs of blocks in one element. Code and tables are content, however often they stand. */
export function pageBoxes(markdown: string, blocks: readonly PlacedBlock[]): PageBox[] {
  const runs: PlacedBlock[][] = [];
  for (const block of blocks) {
    const run = runs.at(-1);
    if (run !== undefined && run[0]?.box === block.box) run.push(block);
    else if (runs.length === boxLimits.boxesMax) break;
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [start, end] = [run[0]?.start ?? 0, run.at(-1)?.end ?? 0];
    const text = markdown.slice(start, end);
    const stays = rights.test(text) || run.some(({ block }) => block.type === 'code' || block.type === 'table');
    const isHeading = run.every(({ block }) => block.type === 'heading');
    return { key: stays ? '' : keyOf(placeOf(run[0]?.box), text), start, end, isHeading };
  });
}

/** The path to an element, with its own names but without the numbers in them. */
function placeOf(box: HtmlElement | undefined): string {
  const names: string[] = [];
  for (let at = box; at !== undefined; at = at.parent) names.push(at.name);
  return `${names.join('<')} ${(box?.attributes.class ?? '').replaceAll(/\d+/g, '')}`;
}

function keyOf(place: string, text: string): string {
  return hash('sha256', `${place}\n${text}`).slice(0, 16);
}
