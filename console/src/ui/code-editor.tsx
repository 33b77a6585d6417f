import { json, jsonParseLinter } from '@codemirror/lang-json';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, linter } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, hoverTooltip } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { basicSetup } from 'codemirror';
import { useEffect, useRef } from 'react';
import './code-editor.css';
import { pageNonce } from './nonce.ts';

/** A mistake in a range of the text. */
export type Mistake = { from: number; to: number; message: string };

/** What may be written at a place of the text, and what a word means. */
type Help = {
  complete: (text: string, at: number) => { from: number; to: number; options: Option[] } | undefined;
  explain: (text: string, at: number) => { from: number; to: number; title: string; text: string } | undefined;
};
type Option = { label: string; apply: string; info?: string };

/** CodeMirror, loaded when an editor opens. As in every other field, Tab moves the focus to the next one. */
export default function CodeEditor({
  labelledBy,
  label,
  rows,
  language,
  value,
  findMistakes,
  help,
  shown,
  onCursor,
  onChange,
}: {
  labelledBy?: string;
  label?: string;
  rows: number;
  language: 'json' | 'yaml' | 'text';
  value: string;
  findMistakes?: (text: string) => Promise<Mistake[]> | Mistake[];
  /** Does not change while the editor is open. */
  help?: Help;
  /** Moves the cursor to this offset whenever it is another object. */
  shown?: { offset: number } | undefined;
  onCursor?: (offset: number) => void;
  onChange: (value: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef({ onChange, onCursor, findMistakes });
  latest.current = { onChange, onCursor, findMistakes };
  /** Texts that the editor has handed over and that have not come back as `value`. */
  const handedOver = useRef<string[]>([]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the value goes in below, without a new editor
  useEffect(() => {
    if (!host.current) return;
    const parses = language === 'json' ? [json()] : language === 'yaml' ? [yaml()] : [];
    const jsonMistakes = jsonParseLinter();
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(pageNonce),
          basicSetup,
          syntaxHighlighting(colours),
          parses,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({
            ...(labelledBy === undefined ? { 'aria-label': label ?? 'Text' } : { 'aria-labelledby': labelledBy }),
            'aria-multiline': 'true',
          }),
          linter(async (editor): Promise<Diagnostic[]> => {
            const text = editor.state.doc.toString();
            const own = await latest.current.findMistakes?.(text);
            if (own !== undefined) return own.map((mistake) => ({ ...mistake, severity: 'error' }));
            return language === 'json' && looksLikeJson.test(text) ? jsonMistakes(editor) : [];
          }),
          help === undefined ? [] : helping(help),
          EditorView.updateListener.of(({ docChanged, selectionSet, state }) => {
            if (docChanged || selectionSet) latest.current.onCursor?.(state.selection.main.head);
            if (!docChanged) return;
            const text = state.doc.toString();
            handedOver.current.push(text);
            latest.current.onChange(text);
            // A dialog detects typing through the events of its fields.
            host.current?.dispatchEvent(new Event('input', { bubbles: true }));
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [language]);

  useEffect(() => {
    const editor = view.current;
    // A text that comes back while the next keys are already typed must not undo them.
    const came = handedOver.current.lastIndexOf(value);
    if (came >= 0) handedOver.current.splice(0, came + 1);
    if (!editor || came >= 0 || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || shown === undefined) return;
    const offset = Math.min(shown.offset, editor.state.doc.length);
    editor.dispatch({ selection: { anchor: offset }, effects: EditorView.scrollIntoView(offset, { y: 'center' }) });
    editor.focus();
  }, [shown]);

  return <div ref={host} className="code-editor" style={{ ['--rows' as string]: rows }} />;
}

/** Offers while typing, and explanations of the word under the pointer. */
function helping({ complete, explain }: Help) {
  const source = ({ state, pos, explicit }: { state: EditorState; pos: number; explicit: boolean }) => {
    const found = complete(state.doc.toString(), pos);
    // An empty line offers nothing before it is asked, so that Enter makes a line.
    if (found === undefined || (found.from === pos && !explicit && state.sliceDoc(pos - 1, pos) !== '.')) return null;
    return { ...found, validFor: /^[\w./-]*$/ };
  };
  return [
    EditorState.languageData.of(() => [{ autocomplete: source }]),
    hoverTooltip(({ state }, pos) => {
      const found = explain(state.doc.toString(), pos);
      if (found === undefined) return null;
      const create = () => {
        const dom = document.createElement('div');
        dom.className = 'explanation';
        const title = document.createElement('code');
        title.textContent = found.title;
        const text = document.createElement('p');
        text.textContent = found.text;
        dom.append(title, text);
        return { dom };
      };
      return { pos: found.from, end: found.to, above: true, create };
    }),
  ];
}

/** A value may be any text. Only text that begins like JSON is checked as JSON. */
const looksLikeJson = /^\s*[[{]/;

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent-strong)' },
  { tag: [tags.string], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment], color: 'var(--faint)' },
]);
