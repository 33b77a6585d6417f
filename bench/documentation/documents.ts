import { admonition, bullets, code, type Document, heading, paragraph, steps, table } from './model.ts';

/** Two pages about a tool that does not exist, with everything that documentation consists of. */
export const documents: Document[] = [
  {
    id: 'guide',
    title: 'Running scheduled tasks',
    blocks: [
      paragraph(
        'A task is a small program that the scheduler starts at a given time, with the files and settings that it needs. This guide starts with one task on one machine and ends with several workers that share a queue.[^1] Read the [reference of settings](https://kiln.example/reference/settings) beside it, because every option is described there and only the common ones are used here.',
      ),
      heading(2, 'Before you start'),
      paragraph(
        'You need a working compiler and about 200 MB of free space. The scheduler itself has no other requirements, and it can be removed by deleting one folder. Most people install it with the package manager of their language.',
      ),
      bullets(
        'A shell with `curl` and `tar`.',
        {
          text: 'One of these runtimes:',
          blocks: [
            bullets('Node 20 or later, for tasks written in TypeScript.', {
              text: 'Python 3.11 or later, with these modules:',
              blocks: [bullets('`asyncio`, which is part of the library.', '`tomllib`, for the settings.')],
            }),
          ],
        },
        'Permission to write to `/var/lib/kiln`.',
      ),
      {
        type: 'tabs',
        tabs: [
          { label: 'npm', blocks: [code('bash', '# installs the command for this user\nnpm install --global kiln')] },
          {
            label: 'pip',
            blocks: [
              code('bash', '# a virtual environment keeps it apart\npython -m venv .venv\n.venv/bin/pip install kiln'),
            ],
          },
          { label: 'Cargo', blocks: [code('bash', 'cargo install kiln --locked')] },
        ],
      },
      admonition(
        'note',
        undefined,
        paragraph(
          'Versions before 2.4 read their settings from the home directory. Move the file once, and later versions will find it.',
        ),
      ),
      heading(2, 'The first task'),
      paragraph(
        'Create a file with the name `backup.ts`. The comment at the top is part of the task: the scheduler shows it in its list, so it should say in one line what the task is for.',
      ),
      code(
        'typescript',
        `
// Copies new files to the second disk every night.
import { task } from 'kiln';

export default task('backup', async ({ files, log }) => {
  // Files that did not change are skipped.
  for await (const file of files.changedSince('yesterday')) {
    if (file.size > 2 ** 30) continue; /* too large for the disk */

    log.info(\`copying \${file.name}\`);
    await file.copyTo('/mnt/second');
  }
});
`,
        { numbered: true },
      ),
      paragraph('The same task in Python is shorter, because its library walks directories for you:'),
      code(
        'python',
        `
# Copies new files to the second disk every night.
from kiln import task


@task("backup")
async def backup(files, log):
    """Skips files that did not change."""
    async for file in files.changed_since("yesterday"):
        if file.size > 2**30:  # too large for the disk
            continue
        log.info("copying %s", file.name)
        await file.copy_to("/mnt/second")
`,
      ),
      heading(3, 'Start it by hand'),
      steps(
        {
          text: 'Check that the file compiles:',
          blocks: [code('bash', 'kiln check backup.ts\n# prints nothing if all is well')],
        },
        {
          text: 'Start it without a schedule and watch its output:',
          blocks: [code('bash', 'kiln run backup.ts --watch \\\n    --limit 10 \\\n    --dry-run')],
        },
        {
          text: 'Repair what the output complains about, in this order:',
          blocks: [
            steps(
              'Missing permissions.',
              'Missing files.',
              'Wrong types, which the [type checker](https://kiln.example/types) explains.',
            ),
          ],
        },
        'Start it again with `--force`.',
      ),
      admonition(
        'warning',
        'Before you use --force',
        paragraph('The option `--force` overwrites files that have the same name. There is no way to get them back.'),
        bullets('Make a copy of the target.', 'Use `--dry-run` first.'),
      ),
      heading(3, 'Give it a schedule'),
      paragraph(
        'A schedule has five fields, as in the tables that system administrators know. The scheduler also accepts names of days.',
      ),
      table(
        ['Field', 'Allowed values', 'Example'],
        ['minute', '0 to 59', '`*/15`'],
        ['hour', '0 to 23', '`3`'],
        ['day of month', '1 to 31', '`1,15`'],
        ['month', '1 to 12 or names', '`jan-mar`'],
        ['day of week', '0 to 6 or names', '`mon`'],
      ),
      code(
        'yaml',
        '# every weekday at half past three\nschedules:\n  backup:\n    at: "30 3 * * mon-fri"\n    timezone: Europe/Vienna\n    retry: { times: 3, wait: 10m }',
      ),
      heading(4, 'Time zones'),
      paragraph(
        'Without a time zone, a schedule is in UTC. On the night when clocks change, a task between two and three o’clock runs once, not twice and not never.[^2]',
      ),
      heading(5, 'Zones without a name'),
      paragraph(
        'An offset such as `+05:30` is allowed, but it does not follow changes of the clock, and the scheduler warns about it when it starts.',
      ),
      heading(6, 'Offsets with seconds'),
      paragraph('Offsets with seconds are refused, because no operating system in use today reports them.'),
      heading(2, 'Several workers'),
      paragraph(
        'When one machine is no longer enough, start more workers with the same queue. Each takes the oldest task that it has a runtime for, and returns it if the worker stops. The expected wait of a task is $w = q / n$, where $q$ is the length of the queue and $n$ the number of workers.',
      ),
      { type: 'formula', tex: '\\bar{w} = \\frac{1}{n} \\sum_{i=1}^{q} t_i' },
      code(
        'go',
        `
package main

// Worker takes tasks until the queue is closed.
func (w *Worker) Run(ctx context.Context) error {
    for {
        job, ok := w.queue.Take(ctx)
        if !ok {
            return nil // closed
        }
        if err := job.Do(ctx); err != nil {
            w.queue.Return(job)
        }
    }
}
`,
      ),
      code(
        'sql',
        "-- the oldest task that no worker has taken\nselect id, name from tasks\nwhere taken_by is null and runtime = 'node'\norder by due_at\nlimit 1\nfor update skip locked;",
      ),
      admonition(
        'tip',
        undefined,
        paragraph(
          'Set `workers` to the number of processors first. More workers help only if tasks wait for the network.',
        ),
      ),
      heading(3, 'What a worker reports'),
      {
        type: 'definitions',
        entries: [
          { term: 'queued', text: 'The task is due and waits for a worker.' },
          { term: 'taken', text: 'A worker has started the task and renews its claim every ten seconds.' },
          { term: 'lost', text: 'The claim of a worker has expired, and the task will be given to another one.' },
        ],
      },
      heading(2, 'What is next?'),
      bullets(
        'Watch the queue with [metrics](https://kiln.example/operate/metrics).',
        'Send results to [other systems](https://kiln.example/integrate/hooks).',
        'Read how [claims](https://kiln.example/internals/claims) work.',
      ),
    ],
    footnotes: [
      { id: '1', text: 'A queue is a table in the database, so no other service is needed.' },
      { id: '2', text: 'The rule is the same that most calendars use for appointments.' },
    ],
  },
  {
    id: 'reference',
    title: 'Reference of the client library',
    blocks: [
      paragraph(
        'The library talks to the scheduler over one connection. All methods return promises, and all of them accept a signal to cancel the call. Errors are described in [errors](https://kiln.example/reference/errors).[^1]',
      ),
      heading(2, '`connect(address, options)`'),
      bullets(
        '`address` is the address of the scheduler, with scheme and port.',
        {
          text: '`options` has these members:',
          blocks: [
            bullets(
              '`token` is the key of the caller.',
              {
                text: '`retry` says what happens when the connection breaks:',
                blocks: [bullets('`times`, 5 unless given.', '`wait`, in milliseconds.')],
              },
              '`signal` cancels the attempt.',
            ),
          ],
        },
        'Returns a connection, or throws `ConnectError`.',
      ),
      {
        type: 'tabs',
        tabs: [
          {
            label: 'JavaScript',
            blocks: [
              code(
                'javascript',
                "import { connect } from 'kiln/client';\n\n// The token comes from the console.\nconst kiln = await connect('https://kiln.example:7070', { token });\nconsole.log(kiln.version); // '2.6.1'",
              ),
            ],
          },
          {
            label: 'Python',
            blocks: [
              code(
                'python',
                'from kiln.client import connect\n\n# The token comes from the console.\nasync with connect("https://kiln.example:7070", token=token) as kiln:\n    print(kiln.version)',
              ),
            ],
          },
        ],
      },
      heading(2, 'Methods of a connection'),
      heading(3, 'kiln.tasks.create(task)'),
      paragraph(
        'Creates a task and returns it with its id. The name must be unique in the project; a second task with the same name is refused and the first stays as it is.',
      ),
      table(
        ['Member', 'Type', 'Default', 'Meaning'],
        ['`name`', '`string`', '', 'The name, up to 64 letters, digits and dashes.'],
        ['`runtime`', '`"node"` or `"python"`', '`"node"`', 'What starts the program.'],
        [
          '`timeout`',
          '`number`',
          '`60`',
          'Seconds until the task is stopped. See [limits](https://kiln.example/reference/limits).',
        ],
        ['`labels`', '`string[]`', '`[]`', 'Words to search by.'],
      ),
      code(
        'json',
        '{\n  "id": "tsk_01",\n  "name": "backup",\n  "labels": ["nightly", "disk"],\n  "next": "2026-03-01T03:30:00Z"\n}',
      ),
      admonition(
        'warning',
        undefined,
        paragraph(
          'A task that is created while the scheduler restarts may appear twice in the list for a few seconds.',
        ),
      ),
      heading(3, 'kiln.tasks.cancel(id)'),
      paragraph(
        'Stops a task and frees its worker. A task that has already ended stays as it is, and the method returns `false` without an error.',
      ),
      code(
        'rust',
        `
/// Stops the task, unless it has ended.
pub async fn cancel(&self, id: &TaskId) -> Result<bool, Error> {
    let reply = self.send(Request::Cancel { id }).await?;
    // An unknown task is an error; a finished one is not.
    match reply {
        Reply::Stopped => Ok(true),
        Reply::Finished => Ok(false),
        other => Err(Error::Unexpected(other)),
    }
}
`,
        { numbered: true },
      ),
      code(
        'java',
        `
/** Stops the task and waits for its worker. */
public boolean cancel(String id) throws IOException {
    // Calls with the same id are joined.
    return calls.computeIfAbsent(id, this::send).join();
}
`,
      ),
      heading(4, 'Order of events'),
      steps(
        'The scheduler marks the task as stopping.',
        {
          text: 'The worker receives a signal:',
          blocks: [bullets('`SIGTERM` first.', '`SIGKILL` after ten seconds.')],
        },
        'The scheduler publishes `task.ended`.',
      ),
      admonition(
        'tip',
        'Cancel many tasks',
        paragraph('Use one call with a list of ids. It costs as much as a single one:'),
        code('bash', 'kiln cancel --label nightly  # all tasks with the label'),
      ),
      heading(3, 'kiln.watch(filter)'),
      paragraph(
        'Yields events as they happen. The iterator ends when the signal is aborted, and it repeats nothing: an event that arrived while nobody was reading is lost unless `replay` is set.[^2]',
      ),
      code(
        'c',
        '#include <kiln.h>\n\n/* Prints the name of each task that ends. */\nint main(void)\n{\n    struct kiln_event e;\n\n    while (kiln_next(&e) == 0)\n        printf("%s <%d>\\n", e.name, e.code);\n    return 0;\n}',
      ),
      heading(2, 'Errors'),
      {
        type: 'definitions',
        entries: [
          {
            term: '`ConnectError`',
            text: 'The scheduler cannot be reached. The member `cause` has the reason that the system gave.',
          },
          { term: '`RefusedError`', text: 'The token is missing, wrong or expired.' },
          { term: '`BusyError`', text: 'Too many calls are open. Wait for `retryAfter` seconds.' },
        ],
      },
      paragraph(
        'The pause before attempt $k$ grows as $2^k$, with some chance added so that clients do not all return in the same second.',
      ),
      { type: 'formula', tex: 'p_k = \\min(2^k + r, 60), \\quad 0 \\le r < 1' },
      heading(2, 'Settings of the process'),
      paragraph(
        'The library reads these variables of the environment. What the program passes to `connect` takes precedence over them.',
      ),
      table(
        ['Variable', 'Meaning'],
        ['`KILN_ADDRESS`', 'The address, if none is passed.'],
        ['`KILN_TOKEN`', 'The token. **Never** write it to a file that is shared.'],
        ['`KILN_DEBUG`', 'Prints every message to the standard error output.'],
      ),
      code('ini', '; read when the process starts\n[kiln]\naddress = https://kiln.example:7070\ndebug = off'),
      code(
        'html',
        '<!-- the page that the console opens -->\n<form action="/sign-in" method="post">\n  <input name="token" type="password">\n</form>',
      ),
      code('css', '/* rows of failed tasks */\n.task[data-state="failed"] > td {\n  color: crimson;\n}'),
      admonition('note', undefined, paragraph('Changes of the environment have no effect on open connections.')),
    ],
    footnotes: [
      { id: '1', text: 'The names of errors are part of the interface and do not change within a major version.' },
      { id: '2', text: 'Events are kept for one hour.' },
    ],
  },
];
