import { readFileSync } from 'node:fs';

/** A text of this folder: its blocks are a small part of Markdown. */
export type ScriptText = {
  name: string;
  /** BCP 47 */
  language: string;
  isRightToLeft: boolean;
  /** The families of Debian's fonts-noto-core and fonts-noto-cjk that have its letters. */
  font: string;
  markdown: string;
  blocks: TextBlock[];
};

type TextBlock =
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'paragraph'; text: string }
  | { kind: 'list'; items: string[] }
  | { kind: 'table'; rows: string[][] };

const scripts: [name: string, language: string, font: string][] = [
  ['latin', 'de', 'Noto Serif'],
  ['greek', 'el', 'Noto Serif'],
  ['cyrillic', 'ru', 'Noto Serif'],
  ['arabic', 'ar', 'Noto Naskh Arabic'],
  ['persian', 'fa', 'Noto Naskh Arabic'],
  ['hebrew', 'he', 'Noto Serif Hebrew'],
  ['hindi', 'hi', 'Noto Serif Devanagari'],
  ['thai', 'th', 'Noto Serif Thai'],
  ['chinese', 'zh-CN', 'Noto Serif CJK SC'],
  ['japanese', 'ja', 'Noto Serif CJK JP'],
  ['korean', 'ko', 'Noto Serif CJK KR'],
];

export function readTexts(): ScriptText[] {
  return scripts.map(([name, language, font]) => {
    const markdown = readFileSync(new URL(`texts/${name}.md`, import.meta.url), 'utf8');
    const isRightToLeft = ['ar', 'fa', 'he'].includes(language);
    return { name, language, isRightToLeft, font, markdown, blocks: blocksOf(markdown) };
  });
}

function blocksOf(markdown: string): TextBlock[] {
  return markdown
    .trim()
    .split(/\n{2,}/)
    .map((block) => {
      const heading = /^(#+) (.*)$/.exec(block);
      if (heading) return { kind: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' };
      const lines = block.split('\n');
      if (block.startsWith('- ')) return { kind: 'list', items: lines.map((line) => line.slice(2)) };
      if (!block.startsWith('|')) return { kind: 'paragraph', text: block };
      const rows = lines.filter((_line, at) => at !== 1);
      return {
        kind: 'table',
        rows: rows.map((row) =>
          row
            .slice(1, -1)
            .split('|')
            .map((cell) => cell.trim()),
        ),
      };
    });
}

/** The words of a text: runs of letters with their marks, Thai by dictionary, each Chinese or Japanese character. */
export function wordsOf(text: string, language: string): string[] {
  // Direction marks and joiners are not drawn.
  const shown = text.normalize('NFC').replaceAll(/\p{Cf}/gu, '');
  const runs = shown.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  if (/^(?:zh|ja)/.test(language))
    return runs.flatMap(
      (run) =>
        run.match(
          /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+/gu,
        ) ?? [],
    );
  if (language !== 'th') return runs;
  const segmenter = new Intl.Segmenter('th', { granularity: 'word' });
  return runs.flatMap((run) => [...segmenter.segment(run)].map(({ segment }) => segment));
}
