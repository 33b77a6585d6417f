import * as Popover from '@radix-ui/react-popover';
import { lazy, Suspense, useState } from 'react';
import './place.css';
import './ui/picker.css';
import { useSession } from './session.tsx';
import { Dialog, Form } from './ui/dialog.tsx';
import { Field, fieldError } from './ui/field.tsx';
import { ChevronsUpDown } from './ui/icons.ts';
import { Empty } from './ui/page.tsx';
import { useAction } from './ui/query.ts';

const PlaceList = lazy(() => import('./place-list.tsx'));

/** The place of the page: for developers a switch of app, sandbox and organisation, for end users what they belong to. */
export function PlacePicker() {
  const { session, isDeveloper, place, apps, sandboxes, orgs } = useSession();
  const [open, setOpen] = useState(false);
  const [adding, setAdding] = useState(false);
  if (!isDeveloper)
    return (
      <div className="place">
        <PlaceLabel
          app={session.app?.name ?? ''}
          sandbox={session.user?.sandbox}
          org={session.user?.org_name ?? 'No organisation'}
        />
      </div>
    );
  const nameIn = (known: { id: string; name: string }[], id: string | undefined) =>
    id === undefined ? undefined : (known.find((one) => one.id === id)?.name ?? id);
  const names = {
    app: nameIn(apps, place.app) ?? 'No app',
    sandbox: nameIn(sandboxes, place.sandbox),
    org: nameIn(orgs, place.org) ?? 'All organisations',
  };
  return (
    <>
      <Popover.Root open={open} onOpenChange={setOpen}>
        <Popover.Trigger asChild>
          <button type="button" className="place place-button">
            <PlaceLabel {...names} />
            <span className="hidden">: change app, sandbox or organisation</span>
            <ChevronsUpDown size={15} aria-hidden="true" />
          </button>
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content className="picker-popover place-popover" align="start" sideOffset={4} aria-label="Places">
            <Suspense fallback={<div className="place-waiting" />}>
              <PlaceList
                onDone={() => setOpen(false)}
                onNewApp={() => {
                  setOpen(false);
                  setAdding(true);
                }}
              />
            </Suspense>
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
      {adding ? (
        <Dialog title="New app" onClose={() => setAdding(false)}>
          <AppForm onDone={() => setAdding(false)} onCancel={() => setAdding(false)} />
        </Dialog>
      ) : null}
    </>
  );
}

/** A sandbox is marked, because nobody should take it for production. */
function PlaceLabel({ app, sandbox, org }: { app: string; sandbox: string | undefined; org: string }) {
  return (
    <>
      <span className="place-mark" aria-hidden="true">
        {app.slice(0, 1).toUpperCase()}
      </span>
      <span className="place-names">
        <span className="cut place-app">{app}</span>
        <span className="cut place-parts">
          {sandbox === undefined ? 'Production' : <span className="place-sandbox">{sandbox}</span>} · {org}
        </span>
      </span>
    </>
  );
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
