import { collect, type HtmlElement } from '../tree.ts';

/** How many elements around code may name its language. */
const wrapperLevels = 6;

/** The language that a `pre`, the `code` in it or the boxes around it name. */
export function languageOf(code: HtmlElement): string | undefined {
  const own = named(code) ?? firstNamed(collect(code, ({ name }) => name === 'code'));
  if (own !== undefined) return own === '' ? undefined : own;
  let box = code.parent;
  for (let level = 0; level < wrapperLevels && box !== undefined && wrapperNames.has(box.name); level++) {
    const language = named(box) ?? wrapperLanguage(box);
    if (language !== undefined) return language === '' ? undefined : language;
    box = box.parent;
  }
  return undefined;
}

const wrapperNames = new Set(['div', 'figure', 'pre', 'code', 'span', 'td', 'tr', 'tbody', 'table']);

function firstNamed(elements: HtmlElement[]): string | undefined {
  for (const element of elements) {
    const language = named(element);
    if (language !== undefined) return language;
  }
  return undefined;
}

const dataNames = ['data-lang', 'data-language', 'data-canonical-lang', 'data-enlighter-language'];

/** The language that an element names; empty if it says that there is none. */
function named({ name, attributes }: HtmlElement): string | undefined {
  for (const key of dataNames) {
    const language = clean(attributes[key]);
    if (language !== undefined) return language;
  }
  // SyntaxHighlighter, in Confluence.
  const brush = /(?:^|[;\s])brush:\s*([\w+#.-]+)/.exec(attributes['data-syntaxhighlighter-params'] ?? '')?.[1];
  if (brush !== undefined) return clean(brush);
  const classes = attributes.class ?? '';
  const marked = /(?:^|\s)(?:language|lang|brush:|src)[-\s]([\w+#.-]+)/.exec(classes)?.[1];
  if (marked !== undefined) return clean(marked);
  const scope = /(?:^|\s)highlight-(?:source|text)-([\w+#.-]+)/.exec(classes)?.[1];
  if (scope !== undefined) return clean(scope === 'html-basic' ? 'html' : scope);
  if (name !== 'pre' && name !== 'code') return undefined;
  // Highlighters write the language beside their own name: `hljs python`, `sourceCode python`.
  const isHighlighted =
    /(?:^|\s)(?:hljs|sourceCode|prism|highlight|chroma|prettyprint|code|rust-example-rendered|item-decl)(?:\s|$)/.test(
      classes,
    );
  const words = classes.split(/\s+/).filter((word) => knownLanguages.has(word.toLowerCase()));
  return words.length > 0 && (isHighlighted || classes.trim() === words[0]) ? clean(words[0]) : undefined;
}

/** Sphinx and Jupyter name the language on a box: `highlight-python notranslate`, `highlight hl-ipython3`. */
function wrapperLanguage({ attributes }: HtmlElement): string | undefined {
  const found = /(?:^|\s)(?:highlight-|highlight hl-)([\w+#.-]+)(?:\s|$)/.exec(attributes.class ?? '')?.[1];
  return found === undefined || found === 'source' ? undefined : clean(found);
}

const noLanguage = /^(?:none|default|auto|undefined|null|plain|plaintext|nohighlight|no-highlight|txt)$/i;
const languageCharactersMax = 30;

function clean(language: string | undefined): string | undefined {
  const name = language?.trim().replace(/[;,].*$/, '');
  if (name === undefined || name === '' || name.length > languageCharactersMax || !/^[\w+#.-]+$/.test(name))
    return undefined;
  if (/^ipython\d?$/i.test(name)) return 'python';
  return noLanguage.test(name) ? '' : name.toLowerCase();
}

/** Names of languages that highlighters write as a class of their own. */
const knownLanguages = new Set(
  (
    'apache bash basic bat c c++ clojure cmake coffeescript console cpp cs csharp css csv dart diff dockerfile elixir ' +
    'elm erlang fortran fsharp go golang graphql groovy haskell hcl html http ini java javascript js json json5 jsonc ' +
    'jsx julia kotlin latex less lisp lua makefile markdown md matlab mermaid nginx nix objc objectivec ocaml perl php ' +
    'powershell proto protobuf ps1 py python python3 r rb rs ruby rust sass scala scheme scss sh shell sql svelte swift ' +
    'tcl terraform tex toml ts tsx typescript vb vim vue xml yaml yml zig zsh'
  ).split(' '),
);
