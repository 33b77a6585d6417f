import { useCallback, useState } from 'react';
import { Link } from 'wouter';
import type { Item } from '../../api/client.ts';
import type { Answer, CreateAnswerRequest } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { count } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import '../knowledge/search.css';
import { AnswerText } from './answer-text.tsx';
import './answers.css';
import { Passages } from './passages.tsx';
import { SourcesField } from './sources-field.tsx';
import { type Progress, useAnswer } from './use-answer.ts';

type Unsupported = NonNullable<CreateAnswerRequest['unsupported']>;

/** A question over sources. Each sentence and each quote of the answer is checked against their passages. */
export function AnswersPage() {
  const [{ query, sources: chosen }, change] = useFilters({ query: '', sources: '' });
  const [text, setText] = useState(query);
  const [model, setModel] = useState('');
  const [unsupported, setUnsupported] = useState<Unsupported>('mark');
  const sources = chosen === '' ? [] : chosen.split(',');
  const { ask, stop, busy, stopped, error, progress } = useAnswer();
  function submit() {
    const question = text.trim();
    if (question === '' || busy) return;
    change({ query: question });
    const named = { ...(model === '' ? {} : { model }), ...(sources.length === 0 ? {} : { sources }) };
    void ask({ query: question, unsupported, ...named });
  }
  return (
    <>
      <PageHead
        title="Answers"
        lead="Ask your documents. Every sentence is checked: what it cites, and whether its quotes are really there."
      >
        <Link
          href={`/knowledge/search?${new URLSearchParams(text === '' ? {} : { query: text })}`}
          className="button plain"
        >
          Search instead
        </Link>
      </PageHead>
      <section className="card">
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          <Field label="Question" error={fieldError(error, 'query')}>
            {(id, described) => (
              <textarea
                id={id}
                {...described}
                rows={2}
                required
                maxLength={10_000}
                value={text}
                onChange={(event) => setText(event.target.value)}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
                  event.preventDefault();
                  submit();
                }}
              />
            )}
          </Field>
          <div className="row">
            <SourcesField value={sources} onChange={(next) => change({ sources: next.join(',') })} />
            <ModelField value={model} error={fieldError(error, 'model')} onChange={setModel} />
            <Field label="Sentences without support">
              {(id) => (
                <select
                  id={id}
                  value={unsupported}
                  onChange={(event) => setUnsupported(event.target.value as Unsupported)}
                >
                  <option value="mark">Mark them</option>
                  <option value="remove">Remove them</option>
                  <option value="refuse">Refuse the answer</option>
                </select>
              )}
            </Field>
          </div>
          <ErrorNotice error={error} shownFields={['query', 'model']} />
          <div className="toolbar">
            <Button type="submit" kind="primary" disabled={busy}>
              Ask
            </Button>
            {busy ? <Button onClick={stop}>Stop</Button> : null}
            {busy ? <span className="live">{progress?.text ? 'Writing' : 'Searching'}</span> : null}
            {stopped ? <span className="faint">Stopped. Sentences that are not checked yet are grey.</span> : null}
          </div>
        </form>
      </section>
      {progress ? <Written progress={progress} /> : null}
    </>
  );
}

/** Only developers see which models there are. Others get the default of the operator. */
function ModelField(props: { value: string; error: string | undefined; onChange: (model: string) => void }) {
  const { isDeveloper } = useSession();
  return isDeveloper ? <ModelChoice {...props} /> : null;
}

function ModelChoice({
  value,
  error,
  onChange,
}: {
  value: string;
  error: string | undefined;
  onChange: (model: string) => void;
}) {
  const models = useApi('GET /api/v1/available_models').data?.data;
  const byDefault = models?.find(({ is_default }) => is_default);
  const hint = models?.length === 0 ? <NoModel /> : undefined;
  return (
    <Field label="Language model" error={error} {...(hint ? { hint } : {})}>
      {(id, described) => (
        <select id={id} {...described} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{models && !byDefault ? 'None: show passages' : nameOfDefault(byDefault)}</option>
          {models
            ?.filter((one) => one !== byDefault)
            .map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
        </select>
      )}
    </Field>
  );
}

function nameOfDefault(model: Item<'GET /api/v1/available_models'> | undefined): string {
  const name = model?.model ?? model?.models?.join(', ');
  return name === undefined ? 'Default' : `Default (${name})`;
}

function NoModel() {
  return (
    <>
      No model yet: <Link href="/models">add one</Link>, or set one for the server.
    </>
  );
}

const noOpen: { numbers: ReadonlySet<number>; latest?: number } = { numbers: new Set() };

function Written({ progress: { text, sentences, answer } }: { progress: Progress }) {
  const [open, setOpen] = useState(noOpen);
  const show = useCallback(
    (number: number) => setOpen(({ numbers }) => ({ numbers: new Set([...numbers, number]), latest: number })),
    [],
  );
  const toggle = (number: number) =>
    setOpen(({ numbers }) => {
      const others = [...numbers].filter((one) => one !== number);
      return { numbers: new Set(numbers.has(number) ? others : [...others, number]) };
    });
  if (answer && text === '') return <WithoutText answer={answer} />;
  const isExtract = answer?.status === 'extracts';
  return (
    <div className="answer">
      {isExtract ? (
        <Extracts />
      ) : (
        <section className="card" aria-label="Answer" aria-busy={answer === undefined}>
          <AnswerText text={text} sentences={sentences} onCitation={answer ? show : undefined} />
          {answer ? <Summary answer={answer} /> : null}
        </section>
      )}
      {answer && answer.citations.length > 0 ? (
        <Passages
          citations={answer.citations}
          sentences={sentences}
          open={isExtract && open === noOpen ? { numbers: new Set([answer.citations[0]?.number ?? 0]) } : open}
          onToggle={toggle}
        />
      ) : null}
    </div>
  );
}

function Summary({ answer: { sentences, removed, incomplete, model, usage, judge } }: { answer: Answer }) {
  const unsupported = sentences.filter((one) => one.unsupported).length;
  const supported = sentences.filter((one) => one.status === 'supported').length;
  const parts = [
    count(sentences.length, 'sentence'),
    unsupported === 0 ? 'each with a passage' : `${unsupported} not supported`,
    ...(judge ? [`${supported} supported by the judge`] : []),
    ...(judge && judge.error !== null ? ['the judge failed'] : []),
    ...(removed > 0 ? [`${removed} removed`] : []),
    ...(incomplete ? ['cut at the limit of its length'] : []),
    ...(model === null ? [] : [model]),
    ...(usage === null ? [] : [count(usage.total_tokens, 'token')]),
  ];
  return <p className="faint">{parts.join(' · ')}</p>;
}

function WithoutText({ answer: { status } }: { answer: Answer }) {
  const { title, text } = endings[status];
  return <Empty title={title}>{text}</Empty>;
}

const endings: Record<Answer['status'], { title: string; text: string }> = {
  answered: { title: 'No text', text: 'The model wrote nothing.' },
  extracts: { title: 'Nothing found', text: 'Try other words or more sources.' },
  not_in_sources: {
    title: 'Not in the sources',
    text: 'No passage of these documents contains the answer. Try other words or more sources.',
  },
  unsupported: {
    title: 'No sentence could be supported',
    text: 'Every text that was written cites nothing or misquotes. Choose “Mark them” to read it all the same.',
  },
  model_refused: { title: 'The model refused', text: 'It did not want to write about this. Ask differently.' },
};

/** Why there are passages and no text, and what to do about it. */
function Extracts() {
  const { isDeveloper } = useSession();
  return (
    <div className="notice">
      <p>
        <strong>These are the passages themselves.</strong> This server has no default language model that could write
        an answer from them.
      </p>
      {isDeveloper ? (
        <p>
          Set <code>QUARRY_LLM_URL</code> and <code>QUARRY_LLM_MODEL</code> where the server runs and restart it (
          <a href="/docs/language-models" target="_blank" rel="noreferrer">
            how
          </a>
          ), or <Link href="/models">add a model of this app</Link> and choose it above.
        </p>
      ) : (
        <p>The operator of the server can set one.</p>
      )}
    </div>
  );
}
