import type { ApiError } from '../../api/client.ts';
import { Field, fieldError, Switch } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';

type Sitemap = 'include' | 'skip' | 'only';
type Site = {
  maxPages: string;
  maxDepth: string;
  include: string;
  exclude: string;
  sitemap: Sitemap;
  subdomains: boolean;
  ignoreRobots: boolean;
};

export const plainSite: Site = {
  ...{ maxPages: '100', maxDepth: '', include: '', exclude: '', sitemap: 'include' },
  ...{ subdomains: false, ignoreRobots: false },
};

/** The members of a request. Those that equal the defaults are left out. */
export function siteMembers({ maxPages, maxDepth, include, exclude, sitemap, subdomains, ignoreRobots }: Site) {
  const patterns = (text: string) => text.split(/\s+/).filter(Boolean);
  return {
    max_pages: Number(maxPages),
    ...(maxDepth === '' ? {} : { max_depth: Number(maxDepth) }),
    ...(include.trim() === '' ? {} : { include_paths: patterns(include) }),
    ...(exclude.trim() === '' ? {} : { exclude_paths: patterns(exclude) }),
    ...(sitemap === 'include' ? {} : { sitemap }),
    ...(subdomains ? { allow_subdomains: true } : {}),
    ...(ignoreRobots ? { ignore_robots: true } : {}),
  };
}

/** The members whose errors are shown next to their controls. */
export const siteFields = ['max_pages', 'max_depth', 'include_paths', 'exclude_paths'];

/** Which pages of a site are read. */
export function SiteOptions({
  value,
  error,
  mayIgnoreRobots,
  onChange,
}: {
  value: Site;
  error: ApiError | undefined;
  mayIgnoreRobots: boolean;
  onChange: (value: Site) => void;
}) {
  const set = (changes: Partial<Site>) => onChange({ ...value, ...changes });
  return (
    <>
      <div className="row">
        <NumberField
          label="Maximum pages"
          error={fieldError(error, 'max_pages')}
          min={1}
          required
          value={value.maxPages}
          onChange={(maxPages) => set({ maxPages })}
        />
        <NumberField
          label="Maximum depth of links"
          error={fieldError(error, 'max_depth')}
          min={0}
          placeholder="any"
          value={value.maxDepth}
          onChange={(maxDepth) => set({ maxDepth })}
        />
        <Field label="Sitemap">
          {(id) => (
            <select id={id} value={value.sitemap} onChange={(event) => set({ sitemap: event.target.value as Sitemap })}>
              <option value="include">Followed in addition to links</option>
              <option value="only">Only the pages that it names</option>
              <option value="skip">Not used</option>
            </select>
          )}
        </Field>
      </div>
      <div className="row">
        <PathsField
          label="Only these paths"
          hint="One per line, such as /docs/ or /*/guide$."
          error={fieldError(error, 'include_paths')}
          value={value.include}
          onChange={(include) => set({ include })}
        />
        <PathsField
          label="Not these paths"
          hint="Prefixes; * matches anything, $ the end."
          error={fieldError(error, 'exclude_paths')}
          value={value.exclude}
          onChange={(exclude) => set({ exclude })}
        />
      </div>
      <div className="toolbar">
        <Switch label="Subdomains too" checked={value.subdomains} onChange={(subdomains) => set({ subdomains })} />
        {mayIgnoreRobots ? (
          <Switch
            label="Also what robots.txt disallows"
            checked={value.ignoreRobots}
            onChange={(ignoreRobots) => set({ ignoreRobots })}
          />
        ) : null}
      </div>
    </>
  );
}

/** Path patterns, one per line. */
function PathsField({
  value,
  onChange,
  ...field
}: {
  label: string;
  hint: string;
  error: string | undefined;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field {...field}>
      {(id, described) => (
        <textarea
          id={id}
          {...described}
          className="code"
          rows={2}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
