import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction, ExtractionOutput } from '../../api/generated.ts';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/code.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Switch } from '../../ui/field.tsx';
import { bytes, count } from '../../ui/format.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { Progress } from '../../ui/progress.tsx';
import { refresh, useAction, useApi, useLoad } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { requestSnippets, Snippets } from '../../ui/snippets.tsx';
import { State } from '../../ui/state.tsx';
import { Time } from '../../ui/time.tsx';
import { FileName } from '../files/file-name.tsx';
import { Preview, readContents } from '../files/preview.tsx';
import { DataPane } from './data-pane.tsx';
import { OutputTable } from './outputs.tsx';

const firstPollMs = 400;

/** One extraction: its progress, and its outputs beside the originals. */
export function ExtractionPage({ id }: { id: string }) {
  const poll = ({ state }: Extraction) => (state === 'running' ? firstPollMs : undefined);
  const loaded = useApi('GET /api/v1/extractions/{extraction}', { path: { extraction: id } }, { poll });
  const [, navigate] = useLocation();
  const [showing, setShowing] = useState(false);
  const again = useAction(async (extraction: Extraction) => {
    const repeated = await call('POST /api/v1/extractions', { body: bodyOf(extraction) });
    navigate(`/extractions/${repeated.id}`);
  });
  return (
    <Shown loaded={loaded}>
      {(extraction) => {
        const running = extraction.state === 'running';
        return (
          <>
            <PageHead
              crumb={extraction.url ?? `Extraction ${id.slice(-6)}`}
              title={extraction.file === undefined ? extraction.url : <FileName id={extraction.file} />}
              lead={
                <>
                  <State value={extraction.state} /> · started <Time at={extraction.created_at} /> ·{' '}
                  {count(extraction.output_count, 'output')} · {bytes(extraction.byte_count)}
                </>
              }
            >
              {running ? null : (
                <Button busy={again.busy} onClick={() => again.run(extraction)}>
                  Run again
                </Button>
              )}
              <Button onClick={() => setShowing(true)}>As code</Button>
              <DeleteButton
                title="Remove this extraction?"
                action={running ? 'Stop and remove it' : 'Remove it'}
                label={running ? 'Stop and remove' : 'Remove'}
                perform={async () => {
                  await call('DELETE /api/v1/extractions/{extraction}', { path: { extraction: id } });
                  refresh('GET /api/v1/extractions');
                  navigate('/extractions');
                }}
              >
                {running ? 'It stops immediately. ' : ''}The files that it has written stay.
              </DeleteButton>
            </PageHead>
            <ErrorNotice error={again.error} />
            {running ? <Running extraction={extraction} /> : null}
            {extraction.state === 'failed' ? <Failure extraction={extraction} /> : null}
            <Outputs extraction={extraction} />
            {showing ? (
              <Dialog title="As code" onClose={() => setShowing(false)} wide>
                <Snippets
                  label="The same extraction"
                  snippets={requestSnippets('POST', '/api/v1/extractions', bodyOf(extraction))}
                />
              </Dialog>
            ) : null}
          </>
        );
      }}
    </Shown>
  );
}

function Running({
  extraction: { progress, waiting_count: waiting = 0, kind, data_progress: data },
}: {
  extraction: Extraction;
}) {
  const read = progress.done + waiting;
  const ended = read + progress.failed;
  if (data !== undefined && data.pieces > 0)
    return (
      <section className="card" aria-live="polite">
        <Progress label="Pieces read for data" part={data.pieces_done / data.pieces} />
        <p className="faint">
          {data.pieces_done} of {count(data.pieces, 'piece')} read for data
        </p>
      </section>
    );
  return (
    <section className="card" aria-live="polite">
      <Progress
        label="Pages read"
        part={kind === 'site' && progress.discovered > 0 ? ended / progress.discovered : undefined}
      />
      <p className="faint">
        {ended === 0
          ? 'Waiting for the first page…'
          : `${count(read, 'page')} read of ${progress.discovered} found${progress.failed > 0 ? `, ${progress.failed} failed` : ''}`}
      </p>
    </section>
  );
}

const advice: Record<string, string> = {
  fetch_failed: 'Check that the address is right and reachable from the server, then start it again.',
  unsupported_content: 'This kind of content cannot be read. Try another form of it, such as PDF or HTML.',
  extraction_failed: 'The document may be damaged. Open it, save a new copy, then try again.',
  timeout: 'It took too long. Try a smaller document, or raise QUARRY_PARSE_SECONDS.',
  internal_error: 'The server failed. Its log has the reason.',
};

function Failure({ extraction: { failure_reason, error, data_progress: data } }: { extraction: Extraction }) {
  return (
    <div className="notice error" role="alert">
      <p>
        <strong>The extraction failed.</strong> {error?.message ?? failure_reason}
      </p>
      <p>
        {data === undefined || data.failed === 0
          ? (advice[failure_reason ?? ''] ?? '')
          : 'The Markdown is below. Change the schema or the instructions, then start it again.'}
      </p>
    </div>
  );
}

/** The request body that starts the same extraction again. */
function bodyOf(extraction: Extraction) {
  const { file, url, mode, destination, org, agent } = extraction;
  const options = siteOptions.flatMap((name) => (extraction[name] === undefined ? [] : [[name, extraction[name]]]));
  return {
    ...(file === undefined ? { url: url ?? '' } : { file }),
    ...(mode === undefined ? {} : { mode }),
    ...(mode === 'site' ? (Object.fromEntries(options) as Pick<Extraction, (typeof siteOptions)[number]>) : {}),
    ...(extraction.schema === undefined ? {} : { schema: extraction.schema }),
    ...(extraction.instructions === undefined ? {} : { instructions: extraction.instructions }),
    destination_kind: destination.kind,
    ...(destination.path_prefix === undefined ? {} : { destination_path: destination.path_prefix }),
    ...(org === undefined ? {} : { org }),
    ...(agent === undefined ? {} : { agent }),
  };
}

const siteOptions = [
  ...(['max_pages', 'include_paths', 'exclude_paths', 'max_depth'] as const),
  ...(['allow_subdomains', 'ignore_robots', 'sitemap'] as const),
];

function Outputs({ extraction }: { extraction: Extraction }) {
  const outputs = extraction.outputs ?? [];
  const done = outputs.filter((output) => output.state === 'done');
  const [{ output: chosen }, change] = useFilters({ output: '' });
  const shown = done.find((output) => output.id === chosen) ?? done[0];
  return (
    <>
      {outputs.length > 1 || outputs.some(({ state }) => state === 'failed') ? (
        <OutputTable extraction={extraction} chosen={shown?.id} onChoose={(id) => change({ output: id })} />
      ) : null}
      {shown ? <DataPane key={`data ${shown.id}`} output={shown} /> : null}
      {shown ? <SideBySide key={shown.id} extraction={extraction} output={shown} /> : null}
      {extraction.left_out && extraction.left_out.length > 0 ? (
        <details className="card">
          <summary>{count(extraction.left_out.length, 'address', 'addresses')} left out</summary>
          <ul className="failures">
            {extraction.left_out.map(({ url, reason }) => (
              <li key={url}>
                <span className="cut">{url}</span>
                <span className="faint">{reason.replaceAll('_', ' ')}</span>
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </>
  );
}

function SideBySide({ extraction, output }: { extraction: Extraction; output: ExtractionOutput }) {
  const [source, setSource] = useState(false);
  const { file } = output;
  const text = useLoad(['output text', output.id], async () => (file ? (await readContents(file)).text() : ''));
  const original = useApi(
    'GET /api/v1/files/{file}',
    { path: { file: extraction.file ?? '' } },
    { enabled: extraction.file !== undefined },
  );
  return (
    <div className="panes">
      <section className="card" aria-label="Original">
        <div className="toolbar">
          <h2>Original</h2>
          {extraction.file === undefined ? null : <Link href={`/files/${extraction.file}`}>Open the file</Link>}
        </div>
        {extraction.file === undefined ? (
          <WebOriginal output={output} />
        ) : (
          <Shown loaded={original}>{(found) => <Preview file={found} />}</Shown>
        )}
      </section>
      <section className="card" aria-label="Markdown">
        <div className="toolbar">
          <h2>Markdown</h2>
          <Switch label="Show as text" checked={source} onChange={setSource} />
          {file ? <Link href={`/files/${file.id}`}>Open the file</Link> : null}
        </div>
        <Shown loaded={text}>
          {(markdown) => (source ? <Code text={markdown} /> : <MarkdownText text={markdown} />)}
        </Shown>
      </section>
    </div>
  );
}

/** Foreign pages are linked, not framed: their scripts must not run here. */
function WebOriginal({ output }: { output: ExtractionOutput }) {
  const metadata = Object.entries({ title: output.title, ...output.metadata }).filter(
    ([, value]) => value !== undefined && typeof value !== 'object',
  );
  return (
    <>
      <p>
        <a href={output.source_url} target="_blank" rel="noreferrer noopener">
          {output.source_url}
        </a>{' '}
        <span className="faint">(opens in a new tab)</span>
      </p>
      {metadata.length === 0 ? (
        <Empty title="The page is on the web">Open it in another tab to compare.</Empty>
      ) : (
        <dl className="details">
          {metadata.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <dd>{String(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}
