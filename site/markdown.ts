import type { MarkdownRenderer } from 'vitepress';
import { findTabs } from './code-tabs.ts';
import { base } from './contents.ts';

/** What the site does to our Markdown that GitHub does not: tabs, and text that Vue must not read. */
export function extendMarkdown(md: MarkdownRenderer): void {
  addTabs(md);
  // Pictures are served unchanged from beside the pages. Bound, so that Vite does not copy them into its assets.
  md.renderer.rules.image = (tokens, at) => {
    const { content, attrs } = tokens[at] ?? {};
    const source = attrs?.find(([name]) => name === 'src')?.[1] ?? '';
    const text = md.utils.escapeHtml(content ?? '');
    return `<img :src="'${base}${md.utils.escapeHtml(source)}'" alt="${text}" loading="lazy">`;
  };
  // A mark for the tests of the guides; the block itself is for readers.
  md.core.ruler.push('marks-of-tests', ({ tokens }) => {
    for (const token of tokens)
      if (token.type === 'fence') token.content = token.content.replace(/^(?:#|\/\/) Not run by the tests: .*\n/, '');
  });
  // Vue would compute `{{…}}`.
  for (const name of ['text', 'code_inline'] as const) {
    const render = md.renderer.rules[name];
    if (!render) throw new Error(`No renderer of ${name}`);
    md.renderer.rules[name] = (...parameters) => render(...parameters).replaceAll('{{', '&#123;&#123;');
  }
}

let groups = 0;

/** Wraps the blocks in the elements of VitePress's own code groups, which its theme styles and switches. */
function addTabs(md: MarkdownRenderer): void {
  md.core.ruler.push('code-tabs', (state) => {
    const tokens: typeof state.tokens = [];
    const html = (content: string) => {
      const token = new state.Token('code_tabs', '', 0);
      token.content = content;
      tokens.push(token);
    };
    for (let at = 0; at < state.tokens.length; at += 1) {
      const { tabs, length } = findTabs(state.tokens, at);
      if (length === 0) {
        const token = state.tokens[at];
        if (token) tokens.push(token);
        continue;
      }
      groups += 1;
      const inputs = tabs.map(
        ({ label }, index) =>
          `<input type="radio" name="tabs-${groups}" id="tab-${groups}-${index}"${index === 0 ? ' checked' : ''}>` +
          `<label data-title="${label}" for="tab-${groups}-${index}">${label}</label>`,
      );
      html(`<div class="vp-code-group"><div class="tabs">${inputs.join('')}</div><div class="blocks">`);
      for (const [index, { blocks }] of tabs.entries()) {
        html(`<div class="tab-of-code${index === 0 ? ' active' : ''}">`);
        tokens.push(...blocks);
        html('</div>');
      }
      html('</div></div>');
      at += length - 1;
    }
    state.tokens = tokens;
  });
  md.renderer.rules.code_tabs = (tokens, at) => tokens[at]?.content ?? '';
}
