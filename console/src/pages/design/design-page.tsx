import { type ReactNode, useState } from 'react';
import { Bars } from '../../ui/bars.tsx';
import { Button, IconButton } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { DropZone } from '../../ui/drop-zone.tsx';
import { Field, Switch } from '../../ui/field.tsx';
import { bytes, duration } from '../../ui/format.ts';
import { Plus } from '../../ui/icons.ts';
import { Live } from '../../ui/live.tsx';
import { Middle } from '../../ui/middle.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { Details, Empty, PageHead } from '../../ui/page.tsx';
import { Progress } from '../../ui/progress.tsx';
import { Skeleton } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { DataTable, Pager } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import './design.css';

/** Every component of the console, in both themes. It needs no data. */
export function DesignPage() {
  return (
    <>
      <PageHead
        title="Design system"
        lead="Every component, in both themes. console/src/ui/README.md says when to use which."
      />
      <div className="design">
        {(['light', 'dark'] as const).map((theme) => (
          <section key={theme} className="design-theme" style={{ colorScheme: theme }} aria-label={`${theme} theme`}>
            <Components theme={theme} />
          </section>
        ))}
      </div>
    </>
  );
}

const states = ['running', 'waiting', 'completed', 'failed', 'cancelled'];
const rows = [
  { id: 'atr_0355FCjeLZxyYhUUnIACas', name: 'Assign a berth to each ship', state: 'completed', ms: 1_240, size: 7_400 },
  { id: 'atr_0355FCkKYZttyY02DSbzJ1', name: 'Weigh cargo', state: 'failed', ms: 66, size: 394 },
  { id: 'atr_0355FCkSeCyRg5BmafDPHg', name: 'Book invoices', state: 'waiting', ms: 4_200_000, size: 31_000_000 },
];
const page = { page: 1, total_pages: 3, total_entries: 124, has_next: true, has_prev: false };
const values = [3, 8, 5, 12, 9, 14, 7, 11, 16, 6, 10, 13];

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="design-part">
      <h3>{name}</h3>
      {children}
    </div>
  );
}

function Components({ theme }: { theme: string }) {
  const [tab, setTab] = useState<'one' | 'two'>('one');
  const [on, setOn] = useState(true);
  const [days, setDays] = useState('30');
  const [asking, setAsking] = useState(false);
  return (
    <>
      <h2>{theme === 'light' ? 'Light' : 'Dark'}</h2>
      <Part name="Buttons">
        <div className="actions">
          <Button kind="primary">Primary</Button>
          <Button>Plain</Button>
          <Button kind="quiet">Quiet</Button>
          <Button kind="danger" onClick={() => setAsking(true)}>
            Delete
          </Button>
          <Button busy>Busy</Button>
          <Button disabled>Disabled</Button>
          <IconButton label={`Add, ${theme}`}>
            <Plus size={16} aria-hidden="true" />
          </IconButton>
          <Button onClick={() => toast('The entry was saved.')}>Show a toast</Button>
        </div>
      </Part>
      <Part name="States">
        <div className="actions design-states">
          {states.map((state) => (
            <State key={state} value={state} />
          ))}
          <Live />
          <span className="badge">Badge</span>
          <span className="badge warn">Sandbox</span>
        </div>
      </Part>
      <Part name="Table">
        <DataTable
          label={`Runs, ${theme}`}
          rows={rows}
          rowId={({ id }) => id}
          columns={[
            {
              id: 'name',
              name: 'Name',
              look: 'main',
              sort: ({ name }) => name,
              cell: ({ name }) => <a href="#table">{name}</a>,
            },
            { id: 'id', name: 'Id', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
            { id: 'state', name: 'State', cell: ({ state }) => <State value={state} /> },
            { id: 'size', name: 'Size', look: 'number', cell: ({ size }) => bytes(size) },
            { id: 'took', name: 'Took', look: 'number', cell: ({ ms }) => duration(ms) },
          ]}
        />
        {theme === 'light' ? <Pager page={page} onPage={() => undefined} /> : null}
      </Part>
      <Part name="Loading">
        <Skeleton rows={3} />
        <Progress part={0.4} label={`Progress, ${theme}`} />
      </Part>
      <Part name="Empty">
        <Empty title="No sources yet" action={<Button>New source</Button>}>
          A source holds documents that agents search.
        </Empty>
      </Part>
      <Part name="Notices">
        <div className="notice">The source reads its site again tonight.</div>
        <div className="notice warning">The run waits for a signal.</div>
        <div className="notice error">The host name could not be resolved.</div>
      </Part>
      <Part name="Form">
        <Field label="Name" hint="Letters, digits and dashes.">
          {(id, described) => <input id={id} {...described} defaultValue="harbour" />}
        </Field>
        <Field label="Schedule" error="This is not a schedule.">
          {(id, described) => <input id={id} {...described} defaultValue="whenever" />}
        </Field>
        <NumberField
          label="Keep for"
          unit="days"
          min={1}
          max={3650}
          hint="1 to 3,650."
          error={undefined}
          value={days}
          onChange={setDays}
        />
        <Field label="Kind">
          {(id) => (
            <select id={id}>
              <option>Documents</option>
            </select>
          )}
        </Field>
        <Switch label="Active" checked={on} onChange={setOn} />
        <DropZone label={`Files, ${theme}`} kind="plain" onFiles={() => undefined}>
          <p>Drop files here, or</p>
        </DropZone>
      </Part>
      <Part name="Tabs and values">
        <Tabs
          label={`Example tabs, ${theme}`}
          value={tab}
          onChange={setTab}
          tabs={[
            { id: 'one', name: 'Details', panel: <Values /> },
            { id: 'two', name: 'JSON', panel: <Json value={{ berth: 'B7', metres: 42 }} label={`JSON, ${theme}`} /> },
          ]}
        />
      </Part>
      <Part name="Over time">
        <Bars
          label="Requests by day"
          bars={values.map((value, at) => ({ key: String(at), value, label: String(value) }))}
        />
      </Part>
      {asking ? (
        <Confirm
          title="Delete this entry?"
          action="Delete the entry"
          busy={false}
          error={undefined}
          onConfirm={() => setAsking(false)}
          onClose={() => setAsking(false)}
        >
          This cannot be undone.
        </Confirm>
      ) : null}
    </>
  );
}

function Values() {
  return (
    <Details
      rows={[
        ['Changed', <Time key="time" at={new Date(Date.now() - 420_000).toISOString()} />],
        [
          'Path',
          <Middle key="path" text="notices/storm-warning-2026-11-27-with-a-long-name-that-nobody-has-shortened.txt" />,
        ],
        ['Id', <Id key="id" id="atr_0355FCjeLZxyYhUUnIACas" />],
      ]}
    />
  );
}
