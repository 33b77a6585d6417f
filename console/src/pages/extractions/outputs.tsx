import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction, ExtractionOutput } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { bytes, count } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import { saveFile } from '../../ui/save.ts';
import { State } from '../../ui/state.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { toast } from '../../ui/toast.tsx';
import { readContents } from '../files/preview.tsx';

const nameOf = ({ title, source_url, file, id }: ExtractionOutput) => title ?? source_url ?? file?.filename ?? id;

/** The outputs with size and state. One of them is shown below. */
export function OutputTable({
  extraction,
  chosen,
  onChoose,
}: {
  extraction: Extraction;
  chosen: string | undefined;
  onChoose: (id: string) => void;
}) {
  const outputs = extraction.outputs ?? [];
  const zip = useAction(() => downloadZip(outputs));
  const columns: Column<ExtractionOutput>[] = [
    { id: 'place', name: 'No.', look: 'number', sort: ({ ordinal }) => ordinal, cell: ({ ordinal }) => ordinal + 1 },
    {
      id: 'name',
      name: 'Output',
      look: 'main',
      sort: nameOf,
      cell: (output) =>
        output.state === 'done' ? (
          <button
            type="button"
            className="as-link"
            aria-pressed={chosen === output.id}
            onClick={() => onChoose(output.id)}
          >
            {nameOf(output)}
          </button>
        ) : (
          nameOf(output)
        ),
    },
    {
      id: 'state',
      name: 'State',
      sort: ({ state }) => state,
      cell: ({ state, error, truncated }) => (
        <>
          <State value={state} /> {truncated ? <State value="waiting" label="cut short" /> : null}{' '}
          {error ? <span className="faint">{error.message ?? error.code}</span> : null}
        </>
      ),
    },
    { id: 'type', name: 'Kind', look: 'wide', sort: (one) => one.page_type ?? '', cell: (one) => one.page_type ?? '–' },
    {
      id: 'size',
      name: 'Size',
      look: 'number',
      sort: ({ file }) => file?.size ?? 0,
      cell: ({ file }) => (file ? bytes(file.size) : '–'),
    },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (output) =>
        output.file ? (
          <>
            <Button kind="quiet" aria-label={`Copy ${nameOf(output)}`} onClick={() => void copyText(output)}>
              Copy
            </Button>
            <Link className="button quiet" href={`/files/${output.file.id}`} aria-label={`File of ${nameOf(output)}`}>
              File
            </Link>
          </>
        ) : null,
    },
  ];
  return (
    <section className="stack" aria-label="Outputs">
      <div className="toolbar">
        <h2>{count(outputs.length, 'output')}</h2>
        {outputs.some(({ file }) => file) ? (
          <Button busy={zip.busy} onClick={() => zip.run()}>
            Download as zip
          </Button>
        ) : null}
      </div>
      <ErrorNotice error={zip.error} />
      <DataTable label="Outputs" columns={columns} rows={outputs} rowId={({ id }) => id} />
    </section>
  );
}

async function copyText({ file }: ExtractionOutput): Promise<void> {
  if (!file) return;
  await navigator.clipboard?.writeText(await (await readContents(file)).text());
  toast('Copied.');
}

const zipBytesMax = 200 * 1024 * 1024;

/** Downloads all outputs in one archive, which is built in the browser. */
async function downloadZip(outputs: ExtractionOutput[]): Promise<void> {
  const files = outputs.flatMap(({ file }) => (file ? [file] : []));
  if (files.reduce((sum, { size }) => sum + size, 0) > zipBytesMax)
    throw new Error(`The outputs are larger than ${bytes(zipBytesMax)} together. Download them one by one.`);
  const { zipSync } = await import('fflate');
  const contents: Record<string, Uint8Array> = {};
  for (const { id } of files) {
    // Needs a new URL: the URLs in the list may have expired.
    const file = await call('GET /api/v1/files/{file}', { path: { file: id } });
    const bytesOf = new Uint8Array(await (await readContents(file)).arrayBuffer());
    const name = contents[file.filename] === undefined ? file.filename : `${id} ${file.filename}`;
    contents[name] = bytesOf;
  }
  saveFile('extraction.zip', new Blob([zipSync(contents) as BlobPart], { type: 'application/zip' }));
}
