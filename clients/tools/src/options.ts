/** Ids or names, alone or with a description that helps the model to choose. */
export type Allowed = readonly string[] | Readonly<Record<string, string>>;

export type ToolOptions<N extends string> = {
  /** The tools that the agent gets. */
  tools: readonly N[];
  /** The knowledge sources (`cso_…`) that `search` and `read` are limited to. Default: all that the credential sees. */
  sources?: Allowed;
  /** Lets `read` and `extract` open stored files by their id. Default false. */
  files?: boolean | undefined;
  /** The hosts that `extract` may be sent to, such as `docs.example.com` or `*.example.com`. Default: every public one. */
  hosts?: readonly string[];
  /** Pages of a site that one call of `extract` may read. Default 20. */
  pagesMax?: number | undefined;
  /** Ids or lookup keys of the automations that `run` may invoke. Required for `run`. */
  automations?: Allowed | undefined;
  /** Precedes every key. The model does not write it and cannot leave it. */
  kvPrefix?: string;
  /** The user (`usr_…`) whose entries the agent gets. Required with a secret key. */
  kvUser?: string | undefined;
  /** Characters of one result. Default 16,000. */
  charactersMax?: number | undefined;
  /** Seconds that `extract` and `run` wait for the end, after which they return the id to look again. Default 45. */
  waitSeconds?: number | undefined;
};

/** The options without the tools, checked and with defaults. */
export type Limits = {
  sources: Map<string, string> | undefined;
  files: boolean;
  hosts: readonly string[] | undefined;
  pagesMax: number;
  automations: Map<string, string>;
  kvPrefix: string;
  kvUser: string | undefined;
  charactersMax: number;
  waitSeconds: number;
};

const allowedMax = 100;

/** Throws TypeError for options that cannot work, so that a mistake shows where the tools are made. */
export function readOptions(options: ToolOptions<string>): Limits {
  // A variable that was not set must not open everything.
  for (const name of ['sources', 'hosts', 'kvPrefix'] as const)
    if (Object.hasOwn(options, name) && options[name] === undefined)
      throw new TypeError(`${name} is undefined. Leave it out if there is no limit.`);
  return {
    sources: options.sources === undefined ? undefined : readAllowed('sources', options.sources),
    files: options.files ?? false,
    hosts: options.hosts,
    pagesMax: readCount('pagesMax', options.pagesMax, { default: 20, min: 1, max: 10_000 }),
    automations: options.automations === undefined ? new Map() : readAllowed('automations', options.automations),
    kvPrefix: options.kvPrefix ?? '',
    kvUser: options.kvUser,
    charactersMax: readCount('charactersMax', options.charactersMax, { default: 16_000, min: 1_000, max: 1_000_000 }),
    waitSeconds: readCount('waitSeconds', options.waitSeconds, { default: 45, min: 0, max: 300 }),
  };
}

function readAllowed(name: string, allowed: Allowed): Map<string, string> {
  const entries = Array.isArray(allowed) ? allowed.map((id: string) => [id, ''] as const) : Object.entries(allowed);
  if (entries.length === 0 || entries.length > allowedMax)
    throw new TypeError(`${name} must name 1 to ${allowedMax}, not ${entries.length}.`);
  return new Map(entries);
}

function readCount(
  name: string,
  value: number | undefined,
  bounds: { default: number; min: number; max: number },
): number {
  const count = value ?? bounds.default;
  if (!Number.isInteger(count) || count < bounds.min || count > bounds.max)
    throw new TypeError(`${name} must be an integer from ${bounds.min} to ${bounds.max}, not ${count}.`);
  return count;
}

/** The lines of a tool's description that say what the model may choose from. */
export function describeAllowed(allowed: Map<string, string>): string {
  return [...allowed].map(([id, text]) => `\n- ${id}${text === '' ? '' : `: ${text}`}`).join('');
}
