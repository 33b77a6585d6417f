import { memo } from 'react';
import Markdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';

const plugins = [remarkGfm];

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
