import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { App } from '../../api/generated.ts';
import { baseOf } from '../../place.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Bars, lastDays } from '../../ui/bars.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog, nameField } from '../../ui/form-dialog.tsx';
import { bytes, compact, count } from '../../ui/format.ts';
import { refresh, useApi } from '../../ui/query.ts';
import { ResourcePage } from '../../ui/resource-page.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { money } from '../models/money.ts';
import '../overview/overview.css';
import { type AppActivity, failedMax, sum, useActivities } from './app-activity.ts';

const appsShown = 20;
const daysShown = 30;
const noApps: App[] = [];
type Activities = ReturnType<typeof useActivities>;

/** All apps of the developer: the traffic of each in the last weeks, what failed and what waits. */
export function AppsPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const [renaming, setRenaming] = useState<App>();
  const query = { page: pageNumber(page), page_size: appsShown };
  const apps = useApi('GET /protected/api/v1/developer/apps', { query }, { keep: true });
  const shown = apps.data?.data ?? noApps;
  const activities = useActivities(shown.map(({ id }) => id));
  return (
    <>
      <ResourcePage<App>
        title="Apps"
        lead="Each app is one tenant. Nothing is visible from one app to another."
        label="Apps"
        loaded={apps}
        columns={columnsOf(activities, setRenaming)}
        rowId={({ id }) => id}
        empty="Create the first one."
        onPage={(next) => change({ page: String(next) })}
        create={{
          button: 'New app',
          title: 'New app',
          submit: 'Create the app',
          fields: nameField,
          onSubmit: async (body) => {
            await call('POST /protected/api/v1/developer/apps', { body: body as { name: string } });
            refresh('GET /protected/api/v1/developer/apps');
          },
        }}
        above={shown.length > 1 ? <Together apps={shown} activities={activities} /> : undefined}
      />
      {renaming ? (
        <FormDialog
          title={`Rename ${renaming.name}`}
          submit="Rename"
          isChange
          fields={nameField}
          initial={renaming}
          onSubmit={async (body) => {
            const path = { app: renaming.id };
            await call('PATCH /protected/api/v1/developer/apps/{app}', { path, body });
            refresh('GET /protected/api/v1/developer/apps');
          }}
          onClose={() => setRenaming(undefined)}
        />
      ) : null}
    </>
  );
}

function columnsOf(activities: Activities, onRename: (app: App) => void): Column<App>[] {
  const number = (
    id: string,
    name: string,
    numberOf: (activity: AppActivity) => number,
    write: (value: number) => string,
    look: 'number' | 'wide' = 'number',
  ): Column<App> => ({
    ...{ id, name, look },
    sort: (app) => {
      const activity = activities.get(app.id)?.activity;
      return activity === undefined ? -1 : numberOf(activity);
    },
    cell: (app) => {
      const { activity, failed = false } = activities.get(app.id) ?? {};
      if (activity === undefined) return <span className="faint">{failed ? 'not known' : '…'}</span>;
      const value = numberOf(activity);
      return <span className={value === 0 ? 'faint number' : 'number'}>{write(value)}</span>;
    },
  });
  return [
    {
      id: 'name',
      name: 'App',
      look: 'main',
      sort: ({ name }) => name,
      // A different place: a plain browser link, outside of this place's router.
      cell: ({ id, name }) => <a href={`${baseOf({ app: id })}/overview`}>{name}</a>,
    },
    {
      id: 'attention',
      name: 'Needs attention',
      sort: ({ id }) => urgency(activities.get(id)?.activity),
      cell: ({ id }) => <Attention app={id} activity={activities.get(id)?.activity} />,
    },
    number('requests', 'Requests', ({ requests }) => requests, compact),
    number('refused', 'Refused', ({ refused }) => refused, compact, 'wide'),
    number('tokens', 'Tokens', ({ tokens }) => tokens, compact),
    number('cost', 'Cost', ({ cost }) => cost, money),
    number('storage', 'Storage', ({ bytes: stored }) => stored, bytes, 'wide'),
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (app) => (
        <Button kind="quiet" aria-label={`Rename ${app.name}`} onClick={() => onRename(app)}>
          Rename
        </Button>
      ),
    },
  ];
}

const urgency = (activity: AppActivity | undefined) =>
  activity === undefined ? -1 : activity.failed * 1_000 + activity.waiting;
const failures = (number: number) => (number >= failedMax ? `${failedMax}+` : String(number));

/** Failed runs and waiting approvals, each as a link into the app. */
function Attention({ app, activity }: { app: string; activity: AppActivity | undefined }) {
  if (activity === undefined) return null;
  const { failed, waiting } = activity;
  const base = baseOf({ app });
  if (failed === 0 && waiting === 0) return <span className="faint">–</span>;
  return (
    <span className="names">
      {failed === 0 ? null : (
        <a href={`${base}/runs?status=failed&period=day`}>
          <State value="failed" label={`${failures(failed)} failed`} />
        </a>
      )}
      {waiting === 0 ? null : (
        <a href={`${base}/approvals`}>
          <State value="waiting" label={`${waiting.toLocaleString('en')} waiting`} />
        </a>
      )}
    </span>
  );
}

/** What the apps on the page sum up to. */
function Together({ apps, activities }: { apps: App[]; activities: Activities }) {
  const known = apps.flatMap(({ id }) => activities.get(id)?.activity ?? []);
  const isWhole = known.length === apps.length;
  const byDay = new Map<string, number>();
  for (const activity of known)
    for (const [day, requests] of activity.byDay) byDay.set(day, (byDay.get(day) ?? 0) + requests);
  const failed = sum(known, (one) => one.failed);
  const waiting = sum(known, (one) => one.waiting);
  return (
    <ul className="measures together" aria-label="All apps together, the last 30 days">
      <li>
        <span className="faint">Requests</span>
        <p className="figure">{isWhole ? compact(sum(known, (one) => one.requests)) : <Waiting />}</p>
        <p className="faint">{compact(sum(known, (one) => one.refused))} refused</p>
        <div className="measure-chart">
          <Bars label="Requests by day" bars={lastDays(daysShown, byDay, (value) => count(value, 'request'))} />
        </div>
      </li>
      <li>
        <span className="faint">Failed runs, last day</span>
        <p className="figure">{isWhole ? failures(failed) : <Waiting />}</p>
        <p className="faint">in {count(known.filter((one) => one.failed > 0).length, 'app')}</p>
      </li>
      <li>
        <span className="faint">Waiting approvals</span>
        <p className="figure">{isWhole ? waiting.toLocaleString('en') : <Waiting />}</p>
        <p className="faint">in {count(known.filter((one) => one.waiting > 0).length, 'app')}</p>
      </li>
      <li>
        <span className="faint">Model tokens</span>
        <p className="figure">{isWhole ? compact(sum(known, (one) => one.tokens)) : <Waiting />}</p>
        <p className="faint">Cost {money(sum(known, (one) => one.cost))}</p>
      </li>
    </ul>
  );
}

const Waiting = () => <span className="waiting-figure" />;
