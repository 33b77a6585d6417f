import { call } from '../../api/client.ts';
import { IconButton } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';
import { X } from '../../ui/icons.ts';
import { Picker } from '../../ui/picker.tsx';
import { useLoad } from '../../ui/query.ts';
import { sourceName } from '../knowledge/source-name.ts';

const sourcesMax = 100;

/** The sources that are searched; all that the caller can see if none is chosen. */
export function SourcesField({ value, onChange }: { value: string[]; onChange: (sources: string[]) => void }) {
  return (
    <Field label="Sources">
      {(id) => (
        <div className="sources-field">
          {value.map((source) => (
            <Chosen key={source} source={source} onRemove={() => onChange(value.filter((one) => one !== source))} />
          ))}
          {value.length >= sourcesMax ? null : (
            <Picker
              id={id}
              label="Sources"
              text={value.length === 0 ? 'All that I can see' : 'Add another'}
              isChosen={false}
              placeholder="Name or id of a source"
              idPattern={/^cso_\w{22}$/}
              findKey="sources"
              find={findSources}
              onChoose={(source) => onChange([...new Set([...value, source])])}
            />
          )}
        </div>
      )}
    </Field>
  );
}

async function findSources(search: string) {
  const query = { page_size: 20, ...(search === '' ? {} : { name: search }) };
  const { data } = await call('GET /api/v1/knowledge_sources', { query });
  return data.map((source) => ({ id: source.id, name: sourceName(source) }));
}

function Chosen({ source, onRemove }: { source: string; onRemove: () => void }) {
  const name = useLoad(['name of source', source], async () =>
    sourceName(await call('GET /api/v1/knowledge_sources/{source}', { path: { source } })),
  ).data;
  return (
    <span className="term">
      <span className="cut">{name ?? source}</span>
      <IconButton className="small" label={`Remove ${name ?? source}`} onClick={onRemove}>
        <X size={13} aria-hidden="true" />
      </IconButton>
    </span>
  );
}
