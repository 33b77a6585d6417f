import { json, jsonParseLinter } from '@codemirror/lang-json';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, linter } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { basicSetup } from 'codemirror';
import { useEffect, useRef } from 'react';
import './code-editor.css';
import { pageNonce } from './nonce.ts';

/** A mistake in a range of the text. */
export type Mistake = { from: number; to: number; message: string };

/** CodeMirror, loaded when an editor opens. As in every other field, Tab moves the focus to the next one. */
export default function CodeEditor({
  labelledBy,
  label,
  rows,
  language,
  value,
  findMistakes,
  onChange,
}: {
  labelledBy?: string;
  label?: string;
  rows: number;
  language: 'json' | 'yaml' | 'text';
  value: string;
  findMistakes?: (text: string) => Promise<Mistake[]> | Mistake[];
  onChange: (value: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef({ onChange, findMistakes });
  latest.current = { onChange, findMistakes };

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
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (!docChanged) return;
            latest.current.onChange(state.doc.toString());
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
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  return <div ref={host} className="code-editor" style={{ ['--rows' as string]: rows }} />;
}

/** A value may be any text. Only text that begins like JSON is checked as JSON. */
const looksLikeJson = /^\s*[[{]/;

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent-strong)' },
  { tag: [tags.string], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment], color: 'var(--faint)' },
]);
