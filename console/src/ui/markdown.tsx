import { memo } from 'react';
import './markdown.css';
import Markdown, { type Components, type Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { Scroll } from './scroll.tsx';

type MarkdownPlugins = NonNullable<Options['remarkPlugins']>;
type Node = { type: string; value?: string; children?: Node[]; data?: { hProperties: Record<string, string> } };

/** Turns the page comments of extractions into labelled rules, and hides other comments. */
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

/** Documents are untrusted: external images are named but not fetched, and links send no referrer. */
const components: Components = {
  img: ({ alt, src }) => <span className="faint">[image: {alt || String(src ?? '')}]</span>,
  a: ({ children, href }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  table: ({ children }) => (
    <Scroll label="Table" className="scroll-x">
      <table>{children}</table>
    </Scroll>
  ),
};

/** Renders Markdown as React elements. HTML in the text is shown as text. `more` marks parts of it. */
export const MarkdownText = memo(
  ({ text, more }: { text: string; more?: { plugins: MarkdownPlugins; components: Components } }) => (
    <div className="markdown">
      <Markdown
        remarkPlugins={more ? [...plugins, ...more.plugins] : plugins}
        components={more ? { ...components, ...more.components } : components}
      >
        {text}
      </Markdown>
    </div>
  ),
);
