import { memo } from 'react';
import Markdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';

type Node = { type: string; value?: string; children?: Node[]; data?: { hProperties: Record<string, string> } };

/** Extractions mark where a page begins by a comment: a line across that says so. Other comments are not for readers. */
function showPageMarks() {
  const change = (node: Node): void => {
    node.children = node.children?.flatMap((child) => {
      if (child.type !== 'html' || !child.value?.startsWith('<!--')) {
        change(child);
        return [child];
      }
      const page = /^<!--\s*page (\d+)\s*-->$/.exec(child.value)?.[1];
      if (page === undefined) return [];
      return [{ type: 'thematicBreak', data: { hProperties: { 'aria-label': `Page ${page}`, 'data-page': page } } }];
    }) as Node[];
  };
  return change;
}

const plugins = [remarkGfm, showPageMarks];

/** Documents come from anywhere: images elsewhere are named but not fetched, links tell nobody where they were read. */
const components: Components = {
  img: ({ alt, src }) => <span className="faint">[image: {alt || String(src ?? '')}]</span>,
  a: ({ children, href }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  table: ({ children }) => (
    <div className="scroll-x">
      <table>{children}</table>
    </div>
  ),
};

/** Markdown as React elements; HTML in it stays text. */
export const MarkdownText = memo(({ text }: { text: string }) => (
  <div className="markdown">
    <Markdown remarkPlugins={plugins} components={components}>
      {text}
    </Markdown>
  </div>
));
