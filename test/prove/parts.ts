import { namesOf, readSources, type Source } from '../support/source.ts';

/** One part of the proof: what is run, and how often. */
export type Part = {
  name: string;
  /** What it tries, as shown in the table. */
  what: string;
  /** The arguments of node. */
  command: string[];
  env: Record<string, string>;
};

type Length = 'quick' | 'long';

const minutesMs = 60_000;
/** Two parts run at a time. More load makes documents time out that are small. */
const longConcurrency = '--test-concurrency=2';
const testTimeout = `--test-timeout=${180 * minutesMs}`;

/** The tests that judge times. Complexity has a part of its own. */
function speedFiles(): string[] {
  const judges = ({ name, text }: Source) =>
    /^test\/(?!rules\/|fuzz\/).*\.test\.ts$/.test(name) &&
    /\b(?:speedTest|inShortTurns|within)\(/.test(text) &&
    text.includes('support/speed.ts');
  return namesOf(readSources('test').filter(judges));
}

/** The parts in the order in which they run. The seed decides what happens in each part. */
export function listParts(length: Length, seed: number): Part[] {
  const of = (quick: number, long: number) => String(length === 'long' ? long : quick);
  const tests = (name: string, what: string, files: string[], env: Record<string, string> = {}): Part => ({
    ...{ name, what, env: { ...seeds, ...env } },
    command: ['test/run.ts', ...files, testTimeout, ...(length === 'long' ? [longConcurrency] : [])],
  });
  const seeds = {
    CRASH_SEED: String(seed),
    LINEARIZABLE_SEED: String(seed),
    MODEL_SEED: String(seed),
    FUZZ_SEED: String(seed),
    FAULT_SEED: String(seed),
    WALL_SEED: String(seed),
    INDEX_SEED: String(seed),
    ALTERED_SEED: String(seed),
  };
  const crash = (name: string) => `test/crash/${name}.test.ts`;
  const kills = {
    ...{ CRASH_ROUNDS: of(4, 20), CRASH_KILLS: of(4, 50), CRASH_RUNS: of(30, 500) },
    ...{ CRASH_FAILOVERS: of(1, 5), CRASH_MOVES: of(2, 20), CRASH_POINTS: of(7, 19) },
  };
  return [
    tests('crash-mixed', `${of(24, 200)} kills under mixed load`, [crash('mixed')], { CRASH_KILLS: of(24, 200) }),
    tests(
      'crash-work',
      `crashes of each kind of work, ${kills.CRASH_ROUNDS} rounds`,
      [
        ...[
          'automations-waiting',
          'automations',
          'budgets',
          'claims',
          'crawl',
          'deletions',
          'erasures',
          'failover',
          'idempotency',
          'sandboxes',
        ],
        ...['jobs-waiting', 'jobs', 'knowledge', 'learning', 'move', 'move-steps', 'programs', 'pushes', 'retention'],
        ...['mcp-tasks', 'structured', 'syncs', 'tools', 'webhooks'],
      ].map(crash),
      kills,
    ),
    tests(
      'crash-bytes',
      'crashes during uploads, watches, backups and sealing, and of the parts of a server',
      [
        ...[
          'backup',
          'cells-skew',
          'cells-start',
          'embedded',
          'fleet',
          'idle',
          'left-behind',
          'ledger',
          'lifecycle',
          'resumable',
          'roles',
        ],
        ...['supervisor', 'uploads', 'watchers'],
      ].map(crash),
      {
        CRASH_UPLOAD_MB: of(24, 2_048),
        CRASH_WATCHERS: of(24, 1_000),
        CRASH_SECONDS: of(4, 600),
      },
    ),
    tests(
      'faults',
      `${of(24, 240)} faults of PostgreSQL and the blob store under load, ${of(12, 120)} of external services, full disks, wrong clocks`,
      [
        ...['faults', 'service-faults', 'cells-alone', 'disk-full', 'full-cluster'].map(crash),
        'test/api/db/clock-skew.test.ts',
        'test/api/crawls/name-servers.test.ts',
      ],
      { FAULTS: of(24, 240), FAULT_MS: of(600, 5_000), SERVICE_FAULTS: of(12, 120), FULL_DISKS: of(4, 20) },
    ),
    tests(
      'linearizability',
      `${of(40, 600)} histories of six clients of the key-value store`,
      ['test/api/kv/linearizable.test.ts', 'test/unit/linearizability.test.ts'],
      { LINEARIZABLE_ROUNDS: of(40, 600) },
    ),
    tests(
      'models',
      `${of(4, 40)} times the sequences of \`npm test\``,
      [
        'test/api/kv/model.test.ts',
        'test/api/kv/watch.test.ts',
        'test/api/files/model.test.ts',
        'test/api/knowledge/pull-model.test.ts',
        'test/api/knowledge/push-model.test.ts',
        'test/api/automations/runs-model.test.ts',
        'test/unit/engine-model.test.ts',
        'test/api/db/fsck-index.test.ts',
      ],
      { MODEL_TIMES: of(4, 40), INDEX_STEPS: of(100, 1_000) },
    ),
    tests('cases', 'generated cases of the other tests, other ones than those of `npm test`', [
      ...['test/api/db/database.test.ts', 'test/api/ledger/ledger.test.ts'],
      ...[
        'backup-encryption',
        'chunk',
        'embed',
        'expressions',
        'graph-layout',
        'knowledge-index',
        'long-text',
        'media-types',
        'secret-values',
        'terms',
        'text-memory',
      ].map((name) => `test/unit/${name}.test.ts`),
    ]),
    tests(
      'walls',
      `${of(6, 20)} apps of ${of(60, 200)} users, ${of(4, 40)} times the worlds of \`npm test\`, each bit of each credential`,
      [
        'test/api/tenancy/walls.test.ts',
        'test/api/tenancy/visibility-oracle.test.ts',
        'test/api/tenancy/altered.test.ts',
      ],
      { MODEL_TIMES: of(4, 40), WALL_APPS: of(6, 20), WALL_USERS: '5', ALTERED_ONE_OF: '1' },
    ),
    tests(
      'references',
      `what requests name, by keys with ${of(8, 80)} sets of scopes, every kind of caller and every node`,
      [
        'test/api/tenancy/scope-references.test.ts',
        'test/api/tenancy/authorization-references.test.ts',
        'test/api/tenancy/authorization-nodes.test.ts',
        'test/api/tenancy/key-scopes.test.ts',
        'test/api/automations/scopes.test.ts',
      ],
      { MODEL_TIMES: of(4, 40) },
    ),
    tests(
      'limits',
      `${of(5, 50)} times every limit, by concurrent callers of two processes`,
      ['test/api/usage/limits.test.ts'],
      {
        LIMIT_ROUNDS: of(5, 50),
      },
    ),
    tests('input', `one of ${of(10, 1)} of all awkward requests`, ['test/fuzz/api.test.ts'], {
      FUZZ_API_ONE_OF: of(10, 1),
    }),
    tests(
      'complexity',
      `one of ${of(40, 1)} of all parameters, headers, queries, members, arguments and raw bodies with texts built to be expensive, in two sizes up to the limit of the route`,
      ['test/fuzz/complexity.test.ts'],
      { COMPLEXITY_ONE_OF: of(40, 1), PROVE_SPEED: '1' },
    ),
    // One file at a time: they compete for the processors.
    tests('speed', 'how long things take, which `npm test` does not judge', [...speedFiles(), '--test-concurrency=1'], {
      PROVE_SPEED: '1',
    }),
    {
      name: 'mutants',
      what: `${of(25, 5_000)} damaged files of every format`,
      command: ['test/fuzz/run.ts', '--each', of(25, 5_000), '--seed', String(seed)],
      env: { PROVE_SPEED: '1' },
    },
    tests('generators', 'clients made by three generators, and the calls of a small application with each', [
      'test/prove/generators.test.ts',
    ]),
    tests(
      'console',
      'every screen of the console at four widths in both themes, and with axe on a desktop and a phone',
      ['layout', 'screens', 'rows'].map((name) => `test/browser/${name}.test.ts`),
      { QUARRY_SCREENS: '1' },
    ),
    tests('guides', 'each guide in a shell of its own', ['test/api/http/docs.test.ts'], { QUARRY_GUIDES: 'each' }),
    tests('package', 'the package as npm packs and installs it, its add-ons and its bundles', [
      'test/prove/package.test.ts',
    ]),
    tests('runtimes', 'the TypeScript client in Deno and Bun', ['test/prove/runtimes.test.ts']),
    tests('renderer', `${of(40, 1_000)} hostile pages in a Chromium`, ['test/browser/renderer-fuzz.test.ts'], {
      RENDER_PAGES: of(40, 1_000),
      PROVE_SPEED: '1',
    }),
    {
      name: 'supply-chain',
      what: 'the packages with binaries, file by file, and npm audit',
      command: ['test/prove/supply-chain.ts'],
      env: {},
    },
  ];
}
