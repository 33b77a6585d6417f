import { useState } from 'react';
import { Link } from 'wouter';
import type { ExtractionOutput } from '../../api/generated.ts';
import { Json } from '../../ui/code.tsx';
import { Switch } from '../../ui/field.tsx';
import { useLoad } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { readContents } from '../files/preview.tsx';
import './data.css';
import { MarkedText, type Span } from './marked-text.tsx';

const valuesShownMax = 1_000;

/** The data of an output. Each value links to its place in the text beside it. */
export function DataPane({ output }: { output: ExtractionOutput }) {
  const { file, data_file: dataFile } = output;
  const loaded = useLoad(['output data', output.id, dataFile?.id ?? ''], async () => {
    const [text, content] = await Promise.all([
      file ? (await readContents(file)).text() : '',
      dataFile ? (await readContents(dataFile)).json() : output,
    ]);
    const { data, spans = [] } = content as { data: unknown; spans?: Span[] };
    return { text, data, spans };
  });
  if (output.data_error !== undefined)
    return (
      <div className="notice error" role="alert">
        <strong>No data.</strong> {output.data_error.message}
      </div>
    );
  if (dataFile === undefined && output.data === undefined) return null;
  return <Shown loaded={loaded}>{(found) => <Values {...found} file={dataFile?.id} />}</Shown>;
}

function Values({ text, data, spans, file }: { text: string; data: unknown; spans: Span[]; file: string | undefined }) {
  const [chosen, setChosen] = useState<string>();
  const [asJson, setAsJson] = useState(false);
  const places = new Set(spans.map(({ path }) => path));
  const values = [...listValues(data)];
  return (
    <div className="panes">
      <section className="card" aria-label="Data">
        <div className="toolbar">
          <h2>Data</h2>
          <Switch label="Show as JSON" checked={asJson} onChange={setAsJson} />
          {file === undefined ? null : <Link href={`/files/${file}`}>Open the data</Link>}
        </div>
        {asJson ? (
          <Json value={data} />
        ) : (
          <dl className="values">
            {values.slice(0, valuesShownMax).map(({ path, value }) => (
              <div key={path}>
                <dt>{path === '' ? 'Value' : path.slice(1).replaceAll('/', ' › ')}</dt>
                <dd>
                  {places.has(path) ? (
                    <button type="button" aria-pressed={path === chosen} onClick={() => setChosen(path)}>
                      {String(value)}
                    </button>
                  ) : (
                    <>
                      {String(value)}{' '}
                      {typeof value === 'string' || typeof value === 'number' ? (
                        <span className="faint">not found in the text</span>
                      ) : null}
                    </>
                  )}
                </dd>
              </div>
            ))}
          </dl>
        )}
        {values.length > valuesShownMax && !asJson ? (
          <p className="notice">The first {valuesShownMax} values. The file of the data has them all.</p>
        ) : null}
      </section>
      <section className="card" aria-label="Positions in the text">
        <div className="toolbar">
          <h2>Positions in the text</h2>
        </div>
        <MarkedText text={text} spans={spans} chosen={chosen} onChoose={setChosen} />
      </section>
    </div>
  );
}

/** The plain values of the data with their JSON Pointers, in order. */
function* listValues(value: unknown, path = ''): Generator<{ path: string; value: unknown }> {
  if (typeof value !== 'object' || value === null) yield { path, value };
  else
    for (const [name, member] of Object.entries(value))
      yield* listValues(member, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}
