const pasts: Record<string, string> = {
  ...{
    create: 'Created',
    update: 'Changed',
    delete: 'Deleted',
    put: 'Set',
    set: 'Set',
    add: 'Added',
    remove: 'Removed',
  },
  ...{
    invoke: 'Started',
    cancel: 'Cancelled',
    retry: 'Retried',
    signal: 'Signalled',
    emit: 'Emitted',
    claim: 'Claimed',
  },
  ...{
    activate: 'Activated',
    pause: 'Paused',
    resume: 'Resumed',
    rotate: 'Rotated',
    test: 'Tested',
    revoke: 'Revoked',
  },
  ...{
    ingest: 'Ingested',
    search: 'Searched',
    start: 'Started',
    complete: 'Completed',
    abort: 'Aborted',
    answer: 'Answered',
  },
  ...{
    upload: 'Uploaded',
    append: 'Added',
    increment: 'Increased',
    batch: 'Wrote',
    report: 'Reported',
    check: 'Checked',
  },
  ...{ post: 'Received', redeliver: 'Repeated', call: 'Called', read: 'Read', refresh: 'Renewed' },
};
const whole: Record<string, string> = {
  ...{ openConsoleSession: 'Signed in to the console', closeConsoleSession: 'Signed out of the console' },
  ...{ login: 'Signed in', logout: 'Signed out', refreshSession: 'Renewed a session', emitEvent: 'Emitted an event' },
  ...{ putConfig: 'Set a config entry', deleteConfig: 'Deleted a config entry', callMcp: 'Called a tool' },
  ...{ invokeAutomation: 'Invoked an automation', putKvEntry: 'Set a key', deleteKvEntry: 'Deleted a key' },
};

/** An operation of the API in words: `createModelBudget` is "Created a model budget". */
export function actionWords(operation: string): string {
  const id = operation.replace(/^(developer|openai)(?=[A-Z])/, '').replace(/^[A-Z]/, (first) => first.toLowerCase());
  const known = whole[id];
  if (known !== undefined) return known;
  const [verb = '', ...rest] = id.split(/(?=[A-Z])/).map((word) => word.toLowerCase());
  const thing = rest
    .join(' ')
    .replace(/\bkv\b/, 'key-value')
    .replace(/\bacl\b/, 'access list')
    .replace(/\burl\b/, 'URL');
  const past = pasts[verb];
  if (past === undefined || thing === '') return [verb, thing].join(' ').trim();
  const article =
    /^(into|by|messages|settings)/.test(thing) || thing.endsWith('s') ? '' : /^[aeiou]/.test(thing) ? 'an ' : 'a ';
  return `${past} ${article}${thing}`;
}
