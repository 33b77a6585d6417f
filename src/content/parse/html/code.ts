import { type HtmlElement, textOf } from './tree.ts';

/**
 * Parts of preformatted text that are not code: buttons, line numbers, and what a reader cannot select. A class says
 * nothing else about code, because highlighters name the parts of a language (`hljs-comment`, `token tag`).
 */
export function isBesideCode(element: HtmlElement): boolean {
  const { name, attributes } = element;
  if (controls.has(name) || attributes.role === 'button' || attributes['aria-hidden'] === 'true') return true;
  if (/(?:^|[\s;-])user-select\s*:\s*none/i.test(attributes.style ?? '') || unselectable.test(attributes.class ?? ''))
    return true;
  return lineNumber.test(attributes.class ?? '') && /^[\d\s]*$/.test(textOf(element));
}

const controls = new Set(['button', 'input', 'select', 'textarea', 'clipboard-copy', 'copy-code', 'mdn-copy-button']);

const unselectable = /(?:^|\s)(?:select-none|user-select-none|unselectable)(?:\s|$)/;

/** Names of line numbers: those of Pygments, Rouge, Chroma, highlight.js, Prism, Shiki and GitHub. */
const lineNumber =
  /(?:^|[\s_-])(?:line-?num(?:ber)?s?|linenos?|linenodiv|gutter|lnt?|blob-num|line-numbers?-rows|hljs-ln-n(?:umbers)?)(?:[\s_-]|$)/i;
