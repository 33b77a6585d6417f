import type { ApiKey } from '../../api/generated.ts';
import './scopes.css';

type Scope = NonNullable<ApiKey['scopes']>[number];
const areas = {
  files: 'Files',
  extractions: 'Extractions and config',
  knowledge: 'Knowledge, threads, installations',
  automations: 'Automations and runs',
  kv: 'Key-value',
  webhooks: 'Webhooks',
  people: 'People and agents',
  app: 'Keys, sandboxes, usage, audit',
} as const;
type Area = keyof typeof areas;

/** What a key may do in each area. An area that is not named is not allowed. */
export type Rights = Partial<Record<Area, 'read' | 'all'>>;

export function scopesOf(rights: Rights): Scope[] {
  return (Object.keys(areas) as Area[]).flatMap((area): Scope[] => {
    const right = rights[area];
    return right === undefined ? [] : [right === 'all' ? area : `${area}:read`];
  });
}

/** The rights that a list of scopes gives. */
export function rightsOf(scopes: readonly string[]): Rights {
  const rights: Rights = {};
  for (const area of Object.keys(areas) as Area[]) {
    if (scopes.includes(area)) rights[area] = 'all';
    else if (scopes.includes(`${area}:read`)) rights[area] = 'read';
  }
  return rights;
}

/** A list of scopes in the words of the form. */
export function scopeWords(scopes: readonly string[]): string {
  const rights = Object.entries(rightsOf(scopes)) as [Area, 'read' | 'all'][];
  return rights.map(([area, right]) => (right === 'read' ? `${areas[area]} (read)` : areas[area])).join(' · ');
}

/** The areas that a new key, or an assistant, may reach: of `most`, if given. */
export function Scopes({
  rights,
  most,
  legend = 'What the key may do',
  error,
  onChange,
}: {
  rights: Rights;
  most?: Rights;
  legend?: string;
  error: string | undefined;
  onChange: (rights: Rights) => void;
}) {
  return (
    <fieldset className="scopes">
      <legend>{legend}</legend>
      {(Object.keys(most ?? areas) as Area[]).map((area) => (
        <label key={area}>
          <span>{areas[area]}</span>
          <select
            value={rights[area] ?? ''}
            onChange={(event) => {
              const { [area]: _former, ...others } = rights;
              const chosen = event.target.value;
              onChange(chosen === 'read' || chosen === 'all' ? { ...others, [area]: chosen } : others);
            }}
          >
            <option value="">nothing</option>
            <option value="read">read</option>
            {most?.[area] === 'read' ? null : <option value="all">read and change</option>}
          </select>
        </label>
      ))}
      {error === undefined ? null : <p className="hint wrong">{error}</p>}
    </fieldset>
  );
}
