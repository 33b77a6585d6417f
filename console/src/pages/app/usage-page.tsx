import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Usage } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { Bars, lastDays } from '../../ui/bars.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { bytes, count } from '../../ui/format.ts';
import { PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import './usage.css';

const names = {
  file_bytes: 'Files and learned models',
  documents: 'Documents',
  pages: 'Pages today',
  tokens: 'Model tokens today',
  sandboxes: 'Sandboxes',
} as const;
type Name = keyof typeof names;
const quotaNames: Record<Name, string> = {
  ...names,
  file_bytes: 'Bytes of files and learned models',
  pages: 'Pages a day',
  tokens: 'Model tokens a day',
};

/** What the app uses, its quotas, and its requests over the last weeks. */
export function UsagePage() {
  const { place } = useSession();
  const app = place.app ?? '';
  const usage = useApi('GET /api/v1/usage');
  const [editing, setEditing] = useState(false);
  return (
    <>
      <PageHead
        title="Usage and quotas"
        lead={
          place.sandbox === undefined
            ? 'What the app uses in production. Each sandbox is counted apart.'
            : 'What this sandbox uses. Production and the other sandboxes are counted apart.'
        }
      >
        <Button onClick={() => setEditing(true)} disabled={!usage.data}>
          Set quotas
        </Button>
      </PageHead>
      <Shown loaded={usage}>{(found) => <Quotas usage={found} />}</Shown>
      <section className="card">
        <h2>Requests by day</h2>
        <Requests />
      </section>
      {editing && usage.data ? (
        <FormDialog
          title="Set quotas"
          lead="Leave a field empty to use the default of the server."
          submit="Save"
          isChange
          fields={(Object.keys(names) as Name[]).map((name) => ({
            ...{ name, kind: 'number' as const, min: 0, clearable: true },
            label: quotaNames[name],
          }))}
          initial={Object.fromEntries(Object.entries(usage.data).map(([name, { limit }]) => [name, limit]))}
          onSubmit={async (quotas) => {
            await call('PATCH /protected/api/v1/developer/apps/{app}', { path: { app }, body: { quotas } });
            refresh('GET /api/v1/usage');
          }}
          onClose={() => setEditing(false)}
        />
      ) : null}
    </>
  );
}

/** Each quota, with a bar that warns when four fifths are used. */
function Quotas({ usage }: { usage: Usage }) {
  return (
    <ul className="quotas">
      {(Object.entries(names) as [Name, string][]).map(([name, label]) => {
        const { used, limit } = usage[name];
        const resetsAt = name === 'pages' || name === 'tokens' ? usage[name].resets_at : undefined;
        const shown = (value: number) => (name === 'file_bytes' ? bytes(value) : value.toLocaleString('en'));
        const part = limit === null || limit === 0 ? 0 : used / limit;
        return (
          <li key={name}>
            <p className="label">{label}</p>
            <p className="figure">{shown(used)}</p>
            <p className="faint">
              {limit === null ? 'no limit' : `of ${shown(limit)}`}
              {resetsAt === undefined ? null : (
                <>
                  , starts again <Time at={resetsAt} />
                </>
              )}
            </p>
            {limit === null ? null : (
              <meter aria-label={`${label}, used`} value={part} min={0} max={1} high={0.8} optimum={0}>
                {Math.round(part * 100)} %
              </meter>
            )}
          </li>
        );
      })}
    </ul>
  );
}

const daysShown = 30;

function Requests() {
  const uses = useApi('GET /api/v1/credential_uses', { query: { page_size: 100 } });
  return (
    <Shown loaded={uses}>
      {({ data }) => {
        const byDay = new Map<string, number>();
        for (const { day, requests } of data) byDay.set(day, (byDay.get(day) ?? 0) + requests);
        if (byDay.size === 0) return <p className="faint">No requests yet.</p>;
        const describe = (value: number) => count(value, 'request');
        return <Bars label="Requests by day" height={120} bars={lastDays(daysShown, byDay, describe)} ends />;
      }}
    </Shown>
  );
}
