import { lazy, Suspense, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Automation } from '../../api/generated.ts';
import { ask } from '../../ui/ask.ts';
import { Button } from '../../ui/button.tsx';
import type { Mistake } from '../../ui/code-editor.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { count } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import { useUnsaved } from '../../ui/unsaved.ts';
import { completeAt, explainAt } from './complete.ts';
import { type Language, readDefinition, writeDefinition, writeText } from './definition.ts';
import './editor.css';
import { InvokeForm, suggestPayload } from './invoke-form.tsx';
import { templates } from './templates.ts';

const CodeEditor = lazy(() => import('../../ui/code-editor.tsx'));
const DefinitionGraph = lazy(() => import('./definition-graph.tsx'));
const help = { complete: completeAt, explain: explainAt };
type Problem = { line: number; column: number; node?: string; message: string };

/** Edits a definition, in YAML or JSON. The server checks it as it is typed. */
export default function DefinitionEditor({
  automation,
  onSaved,
}: {
  /** Undefined for a new automation. */
  automation?: Automation;
  onSaved: (saved: Automation) => void;
}) {
  const [, navigate] = useLocation();
  const [template, setTemplate] = useState(templates[0]?.id);
  const [language, setLanguage] = useState<Language>('yaml');
  const [saved, setSaved] = useState(() =>
    automation ? writeDefinition(automation, 'yaml') : (templates[0]?.text ?? ''),
  );
  const [text, setText] = useState(saved);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [testing, setTesting] = useState<Automation>();
  const [cursor, setCursor] = useState(0);
  const [shown, setShown] = useState<{ offset: number }>();
  const latestText = useRef(text);
  latestText.current = text;
  const isChanged = text !== saved;
  useUnsaved(isChanged);

  const save = useAction(
    async (andRun: boolean) => {
      const { type, ...body } = readDefinition(text) as { name: string; type: Automation['type'] };
      const path = { automation: automation?.id ?? '' };
      const saved = automation
        ? await call('PATCH /api/v1/automations/{automation}', { path, body })
        : await call('POST /api/v1/automations', { body: { ...body, type } });
      const active = andRun && saved.status !== 'running' ? await activate(saved.id) : saved;
      setSaved(text);
      if (andRun) setTesting(active);
      else onSaved(active);
    },
    { say: 'Saved.', refresh: ['GET /api/v1/automations', 'GET /api/v1/automations/{automation}/versions'] },
  );

  function switchTo(next: Language) {
    try {
      const changed = writeText(readDefinition(text), next);
      if (!isChanged) setSaved(changed);
      setText(changed);
    } catch {
      // Text with a mistake stays unchanged: YAML contains JSON.
    }
    setLanguage(next);
  }

  async function findMistakes(now: string): Promise<Mistake[]> {
    const checked = call('POST /api/v1/automations/check', { body: { text: now } });
    // If the check fails to reach the server, saving reports why.
    const { problems: found } = await checked.catch(() => ({ problems: [] }));
    // An earlier check may end after a later one.
    if (now === latestText.current) setProblems(found);
    const lines = now.split('\n');
    return found.map(({ line, column, node, message }) => {
      const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
      const end = Math.min(now.length, before + (lines[line - 1]?.length ?? 0));
      const from = Math.min(before + column - 1, end);
      return { from, to: Math.max(from, end), message: node === undefined ? message : `${node}: ${message}` };
    });
  }

  return (
    <div className="stack">
      <div className="toolbar">
        {automation ? null : (
          <select
            aria-label="Template"
            value={template}
            onChange={(event) => {
              const chosen = templates.find(({ id }) => id === event.target.value);
              if (!chosen) return;
              const proceed = () => {
                setTemplate(chosen.id);
                setLanguage('yaml');
                setText(chosen.text);
                setSaved(chosen.text);
              };
              if (!isChanged) return proceed();
              const text = 'The template takes its place.';
              ask({ title: 'Replace what you typed?', text, action: 'Replace', proceed });
            }}
          >
            {templates.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
        <select aria-label="Language" value={language} onChange={(event) => switchTo(event.target.value as Language)}>
          <option value="yaml">YAML</option>
          <option value="json">JSON</option>
        </select>
        <span className="faint" role="status">
          {problems.length > 0 ? count(problems.length, 'problem') : isChanged ? 'Not saved' : ''}
        </span>
        <Button kind="primary" busy={save.busy} disabled={problems.length > 0} onClick={() => save.run(false)}>
          {automation ? 'Save' : 'Create'}
        </Button>
        <Button busy={save.busy} disabled={problems.length > 0} onClick={() => save.run(true)}>
          Save and run…
        </Button>
      </div>
      <ErrorNotice error={save.error} />
      <div className="definition">
        <Suspense fallback={<textarea aria-label="Definition" className="code" rows={24} readOnly value={text} />}>
          <CodeEditor
            label="Definition"
            rows={24}
            language={language}
            value={text}
            findMistakes={findMistakes}
            help={help}
            shown={shown}
            onCursor={setCursor}
            onChange={setText}
          />
        </Suspense>
        <section className="definition-graph" aria-label="Graph of the definition">
          <Suspense fallback={null}>
            <DefinitionGraph text={text} cursor={cursor} onShow={(offset) => setShown({ offset })} />
          </Suspense>
        </section>
      </div>
      {problems.length > 0 ? (
        <ol className="problems" aria-label="Problems">
          {problems.map(({ line, column, node, message }) => (
            <li key={`${line}:${column}:${message}`}>
              <span className="faint">Line {line}</span> {node === undefined ? null : <code>{node}</code>} {message}
            </li>
          ))}
        </ol>
      ) : null}
      {testing ? (
        <Dialog title={`Run ${testing.name}`} onClose={() => onSaved(testing)}>
          {testing.type === 'invoked' ? (
            <InvokeForm
              automation={testing.id}
              suggestion={suggestPayload(testing.input_schema)}
              onRun={(run) => navigate(`/runs/${run.id}`)}
            />
          ) : (
            <EmitForm automation={testing} onSent={() => onSaved(testing)} />
          )}
        </Dialog>
      ) : null}
    </div>
  );
}

function activate(id: string): Promise<Automation> {
  return call('POST /api/v1/automations/{automation}/activate', { path: { automation: id } });
}

/** Starts a run of an automation that cannot be invoked: through its event, or at its next time. */
export function EmitForm({ automation, onSent }: { automation: Automation; onSent: () => void }) {
  if (automation.type === 'scheduled')
    return <p>It runs on the schedule {automation.schedule}. Its next run appears in the list by itself.</p>;
  return <InvokeForm automation={automation.id} event={automation.trigger ?? ''} onRun={onSent} />;
}
