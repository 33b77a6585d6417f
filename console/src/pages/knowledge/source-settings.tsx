import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Form } from '../../ui/dialog.tsx';
import { CodeField, Field } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { optimistically, refresh, useAction } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import { InboundUrl } from './inbound-url.tsx';
import { sourceName } from './source-name.ts';

const patch = 'PATCH /api/v1/knowledge_sources/{source}';

/** Edits a source's name, metadata, payload and state, and deletes it. */
export function Settings({
  source,
  onChange,
}: {
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const [, navigate] = useLocation();
  const path = { source: source.id };
  const pause = useAction(() => {
    const state = source.state === 'active' ? ('paused' as const) : ('active' as const);
    return optimistically(source, { ...source, state }, onChange, () => call(patch, { path, body: { state } }));
  });
  return (
    <div className="stack">
      <Name source={source} onChange={onChange} />
      <JsonSetting
        name="payload"
        label="Payload"
        hint="What the source reads, and how, as JSON."
        source={source}
        onChange={onChange}
      />
      <JsonSetting
        name="metadata"
        label="Metadata"
        hint="Your own data about the source, as JSON."
        source={source}
        onChange={onChange}
      />
      {source.type === 'webhook/inbound' ? <InboundUrl source={source.id} /> : null}
      <section className="card">
        <h2>{source.state === 'active' ? 'Pause' : 'Resume'}</h2>
        <p className="hint">A paused source starts no ingestions. Its documents can still be searched.</p>
        <ErrorNotice error={pause.error} />
        <div>
          <Button busy={pause.busy} onClick={() => pause.run()}>
            {source.state === 'active' ? 'Pause the source' : 'Activate the source'}
          </Button>
        </div>
      </section>
      <section className="card">
        <h2>Delete</h2>
        <p className="hint">This also deletes its documents and the history of its ingestions.</p>
        <div>
          <DeleteButton
            title={`Delete ${sourceName(source)}?`}
            action="Delete it"
            label="Delete the source"
            perform={async () => {
              await call('DELETE /api/v1/knowledge_sources/{source}', { path });
              refresh('GET /api/v1/knowledge_sources');
              navigate('/knowledge');
            }}
          >
            This also deletes all of its documents. This cannot be undone.
          </DeleteButton>
        </div>
      </section>
    </div>
  );
}

function Name({ source, onChange }: { source: KnowledgeSource; onChange: (source: KnowledgeSource) => void }) {
  const saved = typeof source.metadata?.name === 'string' ? source.metadata.name : '';
  const [name, setName] = useState(saved);
  useUnsaved(name !== saved);
  const save = useAction(
    async () => {
      const metadata = { ...source.metadata, name };
      onChange(await call(patch, { path: { source: source.id }, body: { metadata } }));
    },
    { say: 'Renamed.', refresh: ['GET /api/v1/knowledge_sources'] },
  );
  return (
    <section className="card">
      <Form submit="Rename" busy={save.busy} error={save.error} onSubmit={() => save.run()}>
        <Field label="Name" hint="Shown in the console. Stored in the metadata.">
          {(id, described) => (
            <input id={id} {...described} required value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
      </Form>
    </section>
  );
}

function JsonSetting({
  name,
  label,
  hint,
  source,
  onChange,
}: {
  name: 'payload' | 'metadata';
  label: string;
  hint: string;
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const textOf = (one: KnowledgeSource) => JSON.stringify(one[name] ?? {}, null, 2);
  const stored = textOf(source);
  const [seen, setSeen] = useState(stored);
  const [text, setText] = useState(stored);
  if (stored !== seen) {
    setSeen(stored);
    // A change made elsewhere updates only text that was not edited here.
    if (text === seen) setText(stored);
  }
  useUnsaved(text !== stored);
  const save = useAction(
    async () => {
      const body = { [name]: parseObject(text) };
      const saved = await call(patch, { path: { source: source.id }, body });
      setText(textOf(saved));
      onChange(saved);
    },
    { say: 'Saved.' },
  );
  return (
    <section className="card">
      <Form submit={`Save the ${name}`} busy={save.busy} error={save.error} onSubmit={() => save.run()}>
        <CodeField label={label} hint={hint} rows={6} value={text} onChange={setText} />
      </Form>
    </section>
  );
}
