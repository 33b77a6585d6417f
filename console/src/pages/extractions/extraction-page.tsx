import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction, ExtractionOutput } from '../../api/generated.ts';
import { Button, bytes, Code, count, Empty, PageHead, Progress, Shown, State, Switch, Time } from '../../ui/basics.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { MarkdownText } from '../../ui/markdown.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { FileName } from '../files/file-name.tsx';
import { Preview, readContents } from '../files/preview.tsx';

const firstPollMs = 400;

/** One extraction: its progress, and its outputs beside the originals. */
export function ExtractionPage({ id }: { id: string }) {
  const loaded = useLoad(
    id,
    () => call('GET /api/v1/extractions/{extraction}', { path: { extraction: id } }),
    ({ state }) => (state === 'running' ? firstPollMs : undefined),
  );
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState(false);
  const remove = useAction(() => call('DELETE /api/v1/extractions/{extraction}', { path: { extraction: id } }));
  return (
    <>
      <p className="back">
        <Link href="/extractions">← Extractions</Link>
      </p>
      <Shown loaded={loaded}>
        {(extraction) => {
          const running = extraction.state === 'running';
          return (
            <>
              <PageHead
                title={extraction.file === undefined ? extraction.url : <FileName id={extraction.file} />}
                lead={
                  <>
                    <State value={extraction.state} /> started <Time at={extraction.created_at} /> ·{' '}
                    {count(extraction.output_count, 'output')} · {bytes(extraction.byte_count)}
                  </>
                }
              >
                <Button kind="danger" onClick={() => setAsking(true)}>
                  {running ? 'Stop and remove' : 'Remove'}
                </Button>
              </PageHead>
              {running ? <Running extraction={extraction} /> : null}
              {extraction.state === 'failed' ? <Failure extraction={extraction} /> : null}
              <Outputs extraction={extraction} />
              {asking ? (
                <Confirm
                  title="Remove this extraction?"
                  action={running ? 'Stop and remove' : 'Remove'}
                  busy={remove.busy}
                  error={remove.error}
                  onClose={() => setAsking(false)}
                  onConfirm={async () => {
                    if (await remove.run()) navigate('/extractions');
                  }}
                >
                  {running ? 'It stops where it is. ' : ''}The files that it has written stay.
                </Confirm>
              ) : null}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function Running({ extraction: { progress, kind } }: { extraction: Extraction }) {
  const ended = progress.done + progress.failed;
  return (
    <section className="card" aria-live="polite">
      <Progress
        label="Pages read"
        part={kind === 'site' && progress.discovered > 0 ? ended / progress.discovered : undefined}
      />
      <p className="faint">
        {ended === 0
          ? 'Waiting for the first page…'
          : `${count(progress.done, 'page')} read of ${progress.discovered} found${progress.failed > 0 ? `, ${progress.failed} failed` : ''}`}
      </p>
    </section>
  );
}

const advice: Record<string, string> = {
  fetch_failed: 'Check that the address is right and reachable from the server, then start it again.',
  unsupported_content: 'This kind of content cannot be read. Try another form of it, such as PDF or HTML.',
  extraction_failed: 'The document may be damaged. Open it, save a new copy, then try again.',
  timeout: 'It took too long. Try a smaller document, or raise QUARRY_PARSE_SECONDS.',
  internal_error: 'Something went wrong on the server; its log says what.',
};

function Failure({ extraction: { failure_reason, error } }: { extraction: Extraction }) {
  return (
    <div className="notice error" role="alert">
      <p>
        <strong>It failed.</strong> {error?.message ?? failure_reason}
      </p>
      <p>{advice[failure_reason ?? ''] ?? ''}</p>
    </div>
  );
}

function Outputs({ extraction }: { extraction: Extraction }) {
  const outputs = extraction.outputs ?? [];
  const done = outputs.filter((output) => output.state === 'done');
  const failed = outputs.filter((output) => output.state === 'failed');
  const [chosen, setChosen] = useState<string>();
  const shown = done.find((output) => output.id === chosen) ?? done[0];
  return (
    <>
      {done.length > 1 ? (
        <div className="picker">
          <span aria-hidden="true">Page</span>
          <select aria-label="Page" value={shown?.id ?? ''} onChange={(event) => setChosen(event.target.value)}>
            {done.map((output) => (
              <option key={output.id} value={output.id}>
                {output.title ?? output.source_url ?? output.file?.filename}
              </option>
            ))}
          </select>
        </div>
      ) : null}
      {shown ? <SideBySide key={shown.id} extraction={extraction} output={shown} /> : null}
      {failed.length === 0 ? null : (
        <section className="card">
          <h2>{count(failed.length, 'page')} failed</h2>
          <ul className="failures">
            {failed.map((output) => (
              <li key={output.id}>
                <span className="cut">{output.source_url}</span>
                <span className="faint">{output.error?.message ?? output.error?.code}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
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
  const text = useLoad(output.id, async () => (file ? (await readContents(file)).text() : ''));
  const original = useLoad(extraction.file ?? 'none', async () =>
    extraction.file === undefined ? undefined : call('GET /api/v1/files/{file}', { path: { file: extraction.file } }),
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
          <Shown loaded={original}>{(found) => (found ? <Preview file={found} /> : null)}</Shown>
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

/** Pages of others are linked, not framed: their scripts have no business here. */
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
        <Empty title="The page is on the web">Open it in a tab beside this one to compare.</Empty>
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
