import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Thread } from '../../api/generated.ts';
import { Owner } from '../../principals/principal-name.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import { ownerMember } from './agents-page.tsx';

const title: FieldSpec = { name: 'title', label: 'Title' };
const owner: FieldSpec = {
  name: 'owner',
  label: 'Owner',
  kind: 'principal',
  principals: ['agent', 'user', 'team', 'org'],
  hint: 'Messages of an agent’s thread become documents when its installation takes them.',
};

const columns: Column<Thread>[] = [
  {
    id: 'title',
    name: 'Thread',
    look: 'main',
    sort: (one) => one.title ?? '',
    cell: (one) => <Link href={`/threads/${one.id}`}>{one.title ?? one.id}</Link>,
  },
  { id: 'owner', name: 'Owner', cell: (thread) => <Owner of={thread} /> },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

export function ThreadsPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const threads = useApi('GET /api/v1/threads', { query: { page: pageNumber(page) } }, { keep: true });
  return (
    <ResourcePage<Thread>
      title="Threads"
      lead="Conversations whose messages can become knowledge."
      label="Threads"
      loaded={threads}
      columns={columns}
      rowId={({ id }) => id}
      empty="Create one, install thread/messages for its agent, then post messages to it."
      onPage={(next) => change({ page: String(next) })}
      create={{
        button: 'New thread',
        title: 'New thread',
        submit: 'Create the thread',
        fields: [title, owner],
        onSubmit: async ({ owner: named, ...body }) => {
          await call('POST /api/v1/threads', { body: { ...body, ...ownerMember(named) } });
          refresh('GET /api/v1/threads');
        },
      }}
    />
  );
}

export function ThreadPage({ id }: { id: string }) {
  const path = { thread: id };
  const thread = useApi('GET /api/v1/threads/{thread}', { path });
  const [renaming, setRenaming] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={thread}>
      {(found) => (
        <>
          <PageHead title={found.title ?? 'Thread'} lead={<Id id={found.id} />}>
            <Button onClick={() => setRenaming(true)}>Rename</Button>
            <DeleteButton
              title="Delete this thread?"
              action="Delete the thread"
              perform={async () => {
                await call('DELETE /api/v1/threads/{thread}', { path });
                refresh('GET /api/v1/threads');
                navigate('/threads');
              }}
            >
              This also deletes the sources that belong to it. This cannot be undone.
            </DeleteButton>
          </PageHead>
          <section className="card">
            <Details
              rows={[
                ['Owner', <Owner key="owner" of={found} />],
                ['Created', <Time key="created" at={found.created_at} />],
              ]}
            />
          </section>
          <PostMessage thread={id} />
          {renaming ? (
            <FormDialog
              title="Rename the thread"
              submit="Save"
              isChange
              fields={[title]}
              initial={found}
              onSubmit={async (body) => thread.replace(await call('PATCH /api/v1/threads/{thread}', { path, body }))}
              onClose={() => setRenaming(false)}
            />
          ) : null}
        </>
      )}
    </Shown>
  );
}

function PostMessage({ thread }: { thread: string }) {
  const [content, setContent] = useState('');
  useUnsaved(content !== '');
  const post = useAction(
    async () => {
      await call('POST /api/v1/threads/{thread}/messages', { path: { thread }, body: { content } });
      setContent('');
    },
    { say: 'The message was posted.' },
  );
  return (
    <section className="card">
      <Form
        submit="Post the message"
        busy={post.busy}
        error={post.error}
        shownFields={['content']}
        onSubmit={() => post.run()}
      >
        <Field
          label="Message"
          hint="With an installation of thread/messages, it becomes a document that searches find."
          error={fieldError(post.error, 'content')}
        >
          {(id, described) => (
            <textarea
              id={id}
              {...described}
              rows={4}
              required
              value={content}
              onChange={(event) => setContent(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </section>
  );
}
