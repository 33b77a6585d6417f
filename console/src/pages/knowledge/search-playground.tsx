import { useEffect, useState } from 'react';
import { type ApiError, call } from '../../api/client.ts';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Field, fieldError, Switch } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import './search.css';
import { NumberField } from '../../ui/number-field.tsx';
import { type Explained, type Found, Results } from './search-results.tsx';

type Mode = 'hybrid' | 'fulltext' | 'vector';
type Setting = { mode: Mode; filter: string; results: string };
/** Without a source and an agent, the search covers everything visible. */
type Target = { source?: string; agent?: string };

const blank: Setting = { mode: 'hybrid', filter: '', results: '10' };
const savedMax = 20;
const savedKey = (id: string) => `quarry.questions.${id}`;

/** A search as an agent sends it, with the reasons for each hit; two settings can be compared. */
export function SearchPlayground(target: Target) {
  const id = target.source ?? target.agent ?? 'everything';
  const [{ query }, change] = useFilters({ query: '' });
  const [text, setText] = useState(query);
  const [first, setFirst] = useState(blank);
  const [second, setSecond] = useState<Setting>();
  const [found, setFound] = useState<Found[]>([]);
  const [saved, setSaved] = useState(() => readSaved(id));
  const search = useAction(async (query: string) => {
    change({ query });
    const settings = second ? [first, second] : [first];
    setFound(await Promise.all(settings.map((setting) => searchOnce(target, query, setting))));
  });
  // A link that contains a query shows its hits.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, for the query in the address
  useEffect(() => {
    if (query !== '') void search.run(query);
  }, []);
  function save(questions: string[]) {
    localStorage.setItem(savedKey(id), JSON.stringify(questions));
    setSaved(questions);
  }
  return (
    <>
      <section className="card">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void search.run(text);
          }}
        >
          <div className="question">
            <Field label="Question or words" error={fieldError(search.error, 'query')}>
              {(fieldId, described) => (
                <input
                  id={fieldId}
                  {...described}
                  type="search"
                  required
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                />
              )}
            </Field>
            <Button type="submit" kind="primary" busy={search.busy}>
              Search
            </Button>
          </div>
          <Settings name="" setting={first} error={second ? undefined : search.error} onChange={setFirst} />
          {second ? (
            <Settings name=" of the second search" setting={second} error={undefined} onChange={setSecond} />
          ) : null}
          <ErrorNotice error={search.error} shownFields={second ? ['query'] : ['query', 'filter', 'max_results']} />
        </form>
        <section className="toolbar" aria-label="Comparison and saved questions">
          <Switch
            label="Compare with other settings"
            checked={second !== undefined}
            onChange={(on) => setSecond(on ? { ...blank, mode: 'fulltext' } : undefined)}
          />
          {saved.map((question) => (
            <Button
              key={question}
              kind="plain"
              onClick={() => {
                setText(question);
                void search.run(question);
              }}
            >
              <span className="cut">{question}</span>
            </Button>
          ))}
          {text.trim() !== '' && !saved.includes(text.trim()) ? (
            <Button kind="quiet" onClick={() => save([text.trim(), ...saved].slice(0, savedMax))}>
              Save this question
            </Button>
          ) : null}
          {saved.includes(text.trim()) ? (
            <Button kind="quiet" onClick={() => save(saved.filter((one) => one !== text.trim()))}>
              Delete this question
            </Button>
          ) : null}
        </section>
      </section>
      <div className={found.length > 1 ? 'panes' : 'stack'}>
        {found.map((one, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the first and the second search
          <Results key={index} found={one} other={found[1 - index]} />
        ))}
      </div>
    </>
  );
}

const modeHints: Record<Mode, string> = {
  hybrid: 'Words and meaning: both rankings count, and a hit that is high in either comes first.',
  fulltext: 'BM25 ranking of the words.',
  vector: 'Cosine similarity of vectors.',
};

function Settings({
  name,
  setting,
  error,
  onChange,
}: {
  name: string;
  setting: Setting;
  error: ApiError | undefined;
  onChange: (setting: Setting) => void;
}) {
  const set = (news: Partial<Setting>) => onChange({ ...setting, ...news });
  return (
    <div className="row">
      <Field label={`Mode${name}`} hint={modeHints[setting.mode]}>
        {(id, described) => (
          <select
            id={id}
            {...described}
            value={setting.mode}
            onChange={(event) => set({ mode: event.target.value as Mode })}
          >
            <option value="hybrid">Both</option>
            <option value="fulltext">Words</option>
            <option value="vector">Vectors</option>
          </select>
        )}
      </Field>
      <Field label={`Filter${name}`} hint='Such as {"year": {"gte": 2024}}' error={fieldError(error, 'filter')}>
        {(id, described) => (
          <input
            id={id}
            {...described}
            className="code"
            spellCheck={false}
            placeholder="none"
            value={setting.filter}
            onChange={(event) => set({ filter: event.target.value })}
          />
        )}
      </Field>
      <NumberField
        label={`Maximum hits${name}`}
        error={fieldError(error, 'max_results')}
        min={1}
        max={100}
        required
        value={setting.results}
        onChange={(results) => set({ results })}
      />
    </div>
  );
}

async function searchOnce(
  { source, agent }: Target,
  query: string,
  { mode, filter, results }: Setting,
): Promise<Found> {
  const body = {
    ...{ query, mode, max_results: Number(results), explain: true },
    ...(filter.trim() === '' ? {} : { filter: parseObject(filter) }),
  };
  const response =
    source !== undefined
      ? await call('POST /api/v1/knowledge_sources/{source}/search', { path: { source }, body })
      : agent !== undefined
        ? await call('POST /api/v1/agents/{agent}/search', { path: { agent }, body })
        : await call('POST /api/v1/knowledge_search', { body });
  return { hits: response.data, explain: response.explain as Explained, mode };
}

function readSaved(id: string): string[] {
  try {
    const saved: unknown = JSON.parse(localStorage.getItem(savedKey(id)) ?? '[]');
    return Array.isArray(saved) ? saved.map(String) : [];
  } catch {
    return [];
  }
}
