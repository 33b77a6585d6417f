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

/** The areas that a new key may reach. */
export function Scopes({
  rights,
  error,
  onChange,
}: {
  rights: Rights;
  error: string | undefined;
  onChange: (rights: Rights) => void;
}) {
  return (
    <fieldset className="scopes">
      <legend>What the key may do</legend>
      {(Object.keys(areas) as Area[]).map((area) => (
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
            <option value="all">everything</option>
          </select>
        </label>
      ))}
      {error === undefined ? null : <p className="hint wrong">{error}</p>}
    </fieldset>
  );
}
