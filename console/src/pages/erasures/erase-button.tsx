import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, Switch } from '../../ui/field.tsx';
import { useAction } from '../../ui/query.ts';
import './erasures.css';

export type SubjectKind = 'user' | 'document' | 'source';
type Subject = { kind: SubjectKind; id: string; name: string };

const removedWith: Record<SubjectKind, string[]> = {
  user: [
    'Their password, e-mail address, name, sessions and tokens. They can no longer act from now on.',
    'What belongs to them or to their agents: sources, files, extractions, threads, automations, entries.',
    'The runs that they started, with journals and outputs, and records of calls of language models.',
  ],
  document: [
    'Its text, chunks, words and vectors, and its ingestions.',
    'What a connector sent of it, and stored answers that a model wrote from it.',
  ],
  source: [
    'The source and all of its documents, with texts, chunks, words and vectors.',
    'Its index, its learned model, its ingestions and syncs, and the pages that it crawled.',
  ],
};
const remaining = [
  'Entries of the audit log: ids and addresses, no contents.',
  'Mentions in what belongs to others, such as a document that names it.',
  'Backups and the write-ahead log of the database, for as long as they are kept.',
  'What models, webhooks and other receivers outside already have.',
];
const nameMax = 60;

/** Orders an erasure, for callers who may. Explains what goes and what stays, and asks for the name. */
export function EraseButton(subject: Subject) {
  const { isDeveloper } = useSession();
  const [asking, setAsking] = useState(false);
  if (!isDeveloper) return null;
  return (
    <>
      <Button kind="danger" onClick={() => setAsking(true)}>
        Erase…
      </Button>
      {asking ? <EraseDialog {...subject} onClose={() => setAsking(false)} /> : null}
    </>
  );
}

function EraseDialog({ kind, id, name, onClose }: Subject & { onClose: () => void }) {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState('');
  const [files, setFiles] = useState(false);
  const word = name.length > nameMax ? id : name;
  const erase = useAction(
    async () => {
      const erasure = await call('POST /api/v1/erasures', { body: { [kind]: id, ...(files ? { files } : {}) } });
      navigate(`/erasures/${erasure.id}`);
    },
    { refresh: ['GET /api/v1/erasures'] },
  );
  return (
    <Dialog title={`Erase this ${kind}?`} onClose={onClose}>
      <Form
        danger
        submit={`Erase the ${kind}`}
        ready={typed.trim() === word.trim()}
        busy={erase.busy}
        error={erase.error}
        onSubmit={() => erase.run()}
        onCancel={onClose}
      >
        <p>
          An erasure deletes everything that is stored under <strong className="named">{name}</strong>, and ends with a
          signed certificate. It cannot be undone or stopped.
        </p>
        <List title="What is removed" points={removedWith[kind]} />
        <List
          title="What remains"
          points={kind === 'user' || files ? remaining : ['The files that it was read from.', ...remaining]}
        />
        <p className="hint">The certificate names each of these, with the last day on which it may be there.</p>
        {kind === 'user' ? null : (
          <Switch label="Erase the files that it was read from, too" checked={files} onChange={setFiles} />
        )}
        <Field label={`Type “${word}” to confirm`}>
          {(field, described) => (
            <input
              id={field}
              {...described}
              data-confirms=""
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </Dialog>
  );
}

function List({ title, points }: { title: string; points: string[] }) {
  return (
    <div className="erase-list">
      <h3>{title}</h3>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
    </div>
  );
}
