import { useState } from 'react';
import { useSession } from './session.tsx';
import { Button } from './ui/button.tsx';
import { Dialog, Form } from './ui/dialog.tsx';
import { Field, fieldError } from './ui/field.tsx';
import { Plus } from './ui/icons.ts';
import { Empty } from './ui/page.tsx';
import { useAction } from './ui/query.ts';

/** For developers, the app, sandbox and org of the page. For end users, what belongs to them. */
export function PlacePicker() {
  const { session, isDeveloper, place, apps, sandboxes, orgs, choose } = useSession();
  const [adding, setAdding] = useState(false);
  if (!isDeveloper)
    return (
      <dl className="place">
        <dt>App</dt>
        <dd>{session.app?.name}</dd>
        {session.user?.sandbox === undefined ? null : (
          <>
            <dt>Sandbox</dt>
            <dd>
              <code>{session.user.sandbox}</code>
            </dd>
          </>
        )}
        <dt>Organisation</dt>
        <dd>{session.user?.org_name ?? 'none'}</dd>
      </dl>
    );
  return (
    <div className="place">
      <Field label="App">
        {(id) => (
          <div className="with-button">
            <select id={id} value={place.app ?? ''} onChange={(event) => choose({ app: event.target.value })}>
              <Absent value={place.app} known={apps} />
              {apps.map((app) => (
                <option key={app.id} value={app.id}>
                  {app.name}
                </option>
              ))}
            </select>
            <Button kind="plain" aria-label="New app" title="New app" onClick={() => setAdding(true)}>
              <Plus size={16} aria-hidden="true" />
            </Button>
          </div>
        )}
      </Field>
      <Field label="Sandbox">
        {(id) => (
          <select
            id={id}
            value={place.sandbox ?? ''}
            onChange={(event) => choose({ app: place.app, sandbox: event.target.value || undefined })}
          >
            <option value="">Production</option>
            <Absent value={place.sandbox} known={sandboxes} />
            {sandboxes.map((sandbox) => (
              <option key={sandbox.id} value={sandbox.id}>
                {sandbox.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Organisation">
        {(id) => (
          <select
            id={id}
            value={place.org ?? ''}
            onChange={(event) => choose({ ...place, org: event.target.value || undefined })}
          >
            <option value="">All, including unassigned</option>
            <Absent value={place.org} known={orgs} />
            {orgs.map((org) => (
              <option key={org.id} value={org.id}>
                {org.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {adding ? (
        <Dialog title="New app" onClose={() => setAdding(false)}>
          <AppForm onDone={() => setAdding(false)} onCancel={() => setAdding(false)} />
        </Dialog>
      ) : null}
    </div>
  );
}

/** An option for what the address names if it is not among the first hundred of the list. */
function Absent({ value, known }: { value: string | undefined; known: { id: string }[] }) {
  if (value === undefined || known.some(({ id }) => id === value)) return null;
  return <option value={value}>{value}</option>;
}

function AppForm({ onDone, onCancel }: { onDone?: () => void; onCancel?: () => void }) {
  const { addApp } = useSession();
  const [name, setName] = useState('');
  const add = useAction(() => addApp(name), { say: 'The app was created.' });
  return (
    <Form
      submit="Create the app"
      busy={add.busy}
      error={add.error}
      shownFields={['name']}
      onCancel={onCancel}
      onSubmit={async () => {
        if (await add.run()) onDone?.();
      }}
    >
      <Field
        label="Name"
        hint="Everything belongs to an app. Nothing is visible from one app to another."
        error={fieldError(add.error, 'name')}
      >
        {(id, described) => (
          <input id={id} {...described} required value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
    </Form>
  );
}

export function FirstApp() {
  return (
    <div className="page narrow">
      <Empty title="Create your first app">An app is one tenant: its files, sources, automations and users.</Empty>
      <div className="card">
        <AppForm />
      </div>
    </div>
  );
}
