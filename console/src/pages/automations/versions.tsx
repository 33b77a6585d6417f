import { useMemo, useState } from 'react';
import { call } from '../../api/client.ts';
import type { Automation, WorkflowVersion } from '../../api/generated.ts';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty } from '../../ui/page.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { Scroll } from '../../ui/scroll.tsx';
import { Shown } from '../../ui/shown.tsx';
import { writeText } from './definition.ts';
import { type DiffRow, diffLines, pairLines } from './diff.ts';
import './editor.css';

/** The versions of the automation's graph, and what each changed. */
export default function Versions({
  automation,
  onRestored,
}: {
  automation: Automation;
  onRestored: (automation: Automation) => void;
}) {
  const query = { page_size: 100 };
  const versions = useApi('GET /api/v1/automations/{automation}/versions', {
    path: { automation: automation.id },
    query,
  });
  return (
    <Shown loaded={versions}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty title="No graph yet">
            Each change of the workflow creates a version. A run keeps the version it started with.
          </Empty>
        ) : (
          <Comparison automation={automation} versions={data} onRestored={onRestored} />
        )
      }
    </Shown>
  );
}

function Comparison({
  automation,
  versions,
  onRestored,
}: {
  automation: Automation;
  versions: WorkflowVersion[];
  onRestored: (automation: Automation) => void;
}) {
  const [newer, setNewer] = useState(0);
  const [older, setOlder] = useState(Math.min(1, versions.length - 1));
  const [{ sides }, change] = useFilters({ sides: 'beside' });
  const textOf = (index: number) => writeText(versions[index]?.workflow ?? null, 'yaml');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the texts are those of the versions
  const lines = useMemo(() => diffLines(textOf(older), textOf(newer)), [older, newer, versions]);
  const restore = useAction(
    async () => {
      const body = { workflow: versions[newer]?.workflow ?? null };
      const path = { automation: automation.id };
      onRestored(await call('PATCH /api/v1/automations/{automation}', { path, body }));
    },
    { say: 'The version is in use again.', refresh: ['GET /api/v1/automations/{automation}/versions'] },
  );
  const choice = (label: string, value: number, onChange: (index: number) => void) => (
    <select aria-label={label} value={value} onChange={(event) => onChange(Number(event.target.value))}>
      {versions.map(({ version, created_at }, index) => (
        <option key={version} value={index}>
          Version {version}, {new Date(created_at).toLocaleString()}
        </option>
      ))}
    </select>
  );
  return (
    <div className="stack">
      <div className="toolbar">
        {choice('Older version', older, setOlder)}
        <span aria-hidden="true">→</span>
        {choice('Newer version', newer, setNewer)}
        <select
          aria-label="Layout"
          value={sides}
          onChange={(event) => change({ sides: event.target.value as 'beside' | 'below' })}
        >
          <option value="beside">Side by side</option>
          <option value="below">One below the other</option>
        </select>
        {newer === 0 ? null : (
          <Button busy={restore.busy} onClick={() => restore.run()}>
            Use this version again
          </Button>
        )}
      </div>
      <ErrorNotice error={restore.error} />
      {sides === 'beside' ? <Sides rows={pairLines(lines)} /> : <Lines lines={lines} />}
    </div>
  );
}

/** The older version on the left, the newer one on the right. */
function Sides({ rows }: { rows: DiffRow[] }) {
  return (
    <section className="diff-sides" aria-label="Differences">
      {rows.flatMap(({ before, after }, index) => [
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
        <span key={`${index} before`} className={before?.kind}>
          {before?.text ?? ''}
        </span>,
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
        <span key={`${index} after`} className={after?.kind}>
          {after?.text ?? ''}
        </span>,
      ])}
    </section>
  );
}

function Lines({ lines }: { lines: ReturnType<typeof diffLines> }) {
  return (
    <Scroll label="Differences" className="diff">
      {lines.map(({ kind, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
        <span key={index} className={kind}>
          {kind === 'added' ? '+ ' : kind === 'removed' ? '- ' : '  '}
          {text}
        </span>
      ))}
    </Scroll>
  );
}
