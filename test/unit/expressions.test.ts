import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import jsonata from 'jsonata';
import {
  createExpressions,
  ExpressionError,
  type Expressions,
  evaluatePlainPath,
  type Scope,
} from '../../src/automations/engine/expressions.ts';
import { UnicodePattern } from '../../src/automations/engine/linear-pattern.ts';
import { SecretValues } from '../../src/automations/engine/secret-values.ts';
import {
  ExpressionSyntaxError,
  parseTemplate,
  redactHeaders,
  resolveTemplates,
} from '../../src/automations/engine/template.ts';
import { usualTimeouts } from '../../src/lib/timeouts.ts';
import fc from '../support/fast-check.ts';

const expressions = createExpressions();
after(() => expressions.close());

const scope: Scope = {
  input: { bug: 7, tags: ['a', 'b'], list: [{ n: 1 }, { n: 2 }] },
  nodes: { fetch: { status: 200, json: { title: 'Hello' } } },
  participants: { reviewer: 'agt_1' },
  run: { id: 'atr_1' },
  secrets: { TOKEN: 'swordfish' },
  item: { name: 'x' },
  index: 3,
};
const evaluate = (expression: string) => expressions.evaluate('app', expression, scope);
const resolve = async (value: unknown) => (await resolveTemplates(value, evaluate)).value;

test('the automations of an app take turns: expressions that never end delay another automation by one of them', async () => {
  const own = createExpressions({ ...usualTimeouts, restMs: 0 });
  try {
    // Both processes of the app have started.
    await Promise.all(['slow', 'other'].map((name) => own.evaluate('app', '1 + 1', scope, name)));
    const endless = '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)';
    const ended: string[] = [];
    const hanging = Array.from({ length: 4 }, () =>
      own.evaluate('app', endless, scope, 'slow').catch(() => ended.push('slow')),
    );
    for (let index = 0; index < 3; index++) {
      assert.equal(await own.evaluate('app', `1 + ${index}`, scope, 'other'), 1 + index);
      ended.push('other');
    }
    await Promise.all(hanging);
    assert.deepEqual(ended.slice(-3), ['slow', 'slow', 'slow']);
    assert.equal(ended.filter((name) => name === 'other').length, 3);
  } finally {
    await own.close();
  }
});

test('an automation whose expressions end their process again and again rests, and the others of its app work meanwhile', async () => {
  const own = createExpressions({ ...usualTimeouts, restMs: 3_600_000 });
  const endless = '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)';
  const evaluateIn = (automation: string, expression: string) => own.evaluate('app', expression, scope, automation);
  // Work in time ends the row.
  for (const expression of [endless, '1 + 1', endless]) await evaluateIn('slow', expression).catch(() => {});
  assert.equal(await evaluateIn('slow', '1 + 2'), 3);
  for (let time = 0; time < 2; time++) await assert.rejects(evaluateIn('slow', endless), /took longer/);
  assert.ok(own.mustWait('app', 'slow'));
  const resting = evaluateIn('slow', '1 + 3');
  assert.equal(await evaluateIn('other', '1 + 4'), 5);
  assert.equal(await own.evaluate('another app', '1 + 5', scope, 'slow'), 6);
  await Promise.all([assert.rejects(resting, /while the server was closing/), own.close()]);
});

test('a schema of no automation whose check never ends leaves a process to the other schemas of its app', async () => {
  const own = createExpressions();
  try {
    const order: string[] = [];
    const check = async (name: string, schema: unknown) => {
      await own.checkSchema('app', schema, `${'a'.repeat(40)}!`).catch(() => {});
      order.push(name);
    };
    const endless = { pattern: '^(?=a)(a+)+$' };
    await Promise.all([check('slow', endless), check('slow', endless), check('other', { type: 'string' })]);
    assert.deepEqual(order, ['other', 'slow', 'slow']);
  } finally {
    await own.close();
  }
});

test('every binding can be named', async () => {
  assert.equal(await evaluate('$.bug'), 7);
  assert.equal(await evaluate('$nodes.fetch.status = 200'), true);
  assert.equal(await evaluate('$nodes.fetch.json.title'), 'Hello');
  assert.equal(await evaluate('$participants.reviewer & "!"'), 'agt_1!');
  assert.equal(await evaluate('$run.id'), 'atr_1');
  assert.equal(await evaluate('$secrets.TOKEN'), 'swordfish');
  assert.equal(await evaluate('$item.name & $index'), 'x3');
  assert.deepEqual(await evaluate('$.list.n'), [1, 2]);
  assert.equal(await evaluate('$keys($nodes)'), 'fetch');
});

test('a whole expression keeps its type, others become text', async () => {
  assert.deepEqual(await resolve({ a: '{{$.bug}}', b: 'bug {{$.bug}} of {{$item.name}}', c: ['{{$.tags}}'] }), {
    a: 7,
    b: 'bug 7 of x',
    c: [['a', 'b']],
  });
  assert.equal(await resolve('{{$.missing}}'), null);
  assert.equal(await resolve('<{{$.missing}}>'), '<>');
  assert.equal(await resolve('{{$.tags}}!'), '["a","b"]!');
});

test('an expression may contain braces', async () => {
  assert.deepEqual(await resolve('{{ {"a":{"b":$.bug}} }}'), { a: { b: 7 } });
  assert.deepEqual(await resolve('{{{"a":{"b":1}}}}'), { a: { b: 1 } });
  assert.equal(await resolve('{{$.bug}} and {{"}}"}}'), '7 and }}');
});

test('evaluating all outputs together uses no more memory afterwards', () => {
  const nodes: Record<string, unknown> = { a: 1 };
  const { value } = evaluatePlainPath('$nodes', { input: {}, nodes, participants: {}, run: {}, secrets: {} }) ?? {};
  nodes.b = value;
  assert.deepEqual(value, { a: 1 });
});

test('a syntax error has its position', () => {
  assert.throws(() => parseTemplate('a {{1 +}} b'), ExpressionSyntaxError);
  assert.throws(() => parseTemplate('a {{b'), /without }}/);
  assert.throws(() => parseTemplate('{{}}'), /empty/);
});

test('a deep recursion, an endless loop and a memory hog end, and the next expression still runs', async () => {
  await assert.rejects(evaluate('($f := function($n){ $n = 0 ? 0 : 1 + $f($n - 1) }; $f(3000000))'), /expression/);
  await assert.rejects(evaluate('($f := function($n){ $f($n + 1) }; $f(0))'), /expression/);
  await assert.rejects(evaluate('$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)'), /deadline/);
  await assert.rejects(evaluate('$map([1..500000], function($v){ $pad("x", 1000) & $v })'), /expression/);
  // A single string or list that needs more than is left ends its whole process, which must not be this one.
  for (const hungry of ['$pad("", 500000000)', '$uppercase($pad("", 300000000, "é"))'])
    await assert.rejects(evaluate(hungry), /memory|deadline/, hungry);
  assert.equal(await evaluate('1 + 1'), 2);
});

/** How many of another app's evaluations, started before, have ended when `other` has. */
async function endedBefore(
  hostile: (own: Expressions) => Promise<unknown>,
  other: (own: Expressions) => Promise<unknown>,
): Promise<number> {
  const own = createExpressions();
  let ended = 0;
  const count = () => {
    ended += 1;
  };
  try {
    for (let n = 0; n < 12; n++) hostile(own).then(count, count);
    await other(own);
    return ended;
  } finally {
    await own.close();
  }
}

test('an app whose expressions run into their deadline keeps no other app waiting', async () => {
  const catastrophic = '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)';
  const ended = await endedBefore(
    (own) => own.evaluate('hostile', catastrophic, scope),
    async (own) => assert.equal(await own.evaluate('other', '1 + 1', scope), 2),
  );
  assert.ok(ended <= 4, `${ended} of 12`);
});

test('an app whose payloads need minutes of a pattern keeps no other app waiting', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(?=a)(a+)+$' } } };
  const ended = await endedBefore(
    (own) => own.checkSchema('hostile', schema, { a: `${'a'.repeat(40)}!` }),
    async (own) => assert.deepEqual(await own.checkSchema('other', schema, { a: 'aaa' }), []),
  );
  assert.ok(ended <= 4, `${ended} of 12`);
});

test('patterns that step back without end are decided in time, with the meaning of ECMA-262', async () => {
  const long = JSON.stringify(`${'a'.repeat(30_000)}!`);
  assert.equal(await evaluate(`$contains(${long}, /^(a+)+$/)`), false);
  assert.equal(await evaluate(`$match(${long}, /^((?:a+)+)!/)[0].groups[0] = $substringBefore(${long}, "!")`), true);
  assert.equal(await evaluate(`$contains(${long} & "\u2028", /^(?:a|a\\w*)*!.$/)`), false);
  assert.equal(await evaluate(`$contains(${long} & "\u00a0", /^(?:a|a\\w*)*!\\s$/)`), true);
  const schema = (pattern: string) => ({ type: 'object', properties: { a: { type: 'string', pattern } } });
  const check = (pattern: string, a: string) => expressions.checkSchema('app', schema(pattern), { a });
  assert.deepEqual(await check('^(\\w+\\s?)*$', `${'word '.repeat(5_000)}!`), [
    { path: '/a', message: 'must match pattern "^(\\w+\\s?)*$"' },
  ]);
  assert.deepEqual(await check('^(\\w+\\s?)*$', `${'word '.repeat(5_000)}end`), []);
  assert.deepEqual(await check('^.$', '😀'), []);
});

test('a pattern of a schema has the same meaning with and without the linear engine', async (context) => {
  const engine = '--enable-experimental-regexp-engine';
  setFlagsFromString(engine);
  context.after(() => setFlagsFromString(engine.replace('--', '--no-')));
  const lookahead = '(?=a)';
  assert.throws(() => new RegExp(lookahead, 'l'), /linear/);
  const atoms = [
    'a',
    'b',
    '.',
    '\\s',
    '\\S',
    '\\w',
    '\\W',
    '\\b',
    '^',
    '$',
    '[ab]',
    '[^a]',
    '[^\\s]',
    '\\u2028',
    'é',
    '[]',
  ];
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom(...atoms, '\\u{61}', '\\p{L}', '😀'),
      fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => left + right),
      fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => `(${left}|${right})`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{0,2}', '{2}', '*?', '+?', '??'))
        .map(([body, times]) => `(${body})${times}`),
    ),
  }));
  const text = fc.array(fc.constantFrom(...'aab1 é-\n\r\u2028\u00a0\ufeff', '😀', '\ud800'), { maxLength: 8 });
  const found = (expression: RegExp, value: string) => {
    const match = expression.exec(value);
    return match && [...match, match.index];
  };
  fc.assert(
    fc.property(
      pattern,
      text.map((parts) => parts.join('')),
      (source, value) => {
        assert.equal(new UnicodePattern(source, 'u').test(value), new RegExp(source, 'u').test(value));
        for (const flags of ['', 'm', 's'])
          if (!/\\u\{/.test(source))
            assert.deepEqual(found(new RegExp(source, `l${flags}`), value), found(new RegExp(source, flags), value));
      },
    ),
  );
});

test('an expression that a limit ended says so, an invalid one does not', async () => {
  const limitOf = async (expression: string) =>
    evaluate(expression).then(
      () => assert.fail('it gave a value'),
      (error: unknown) => error instanceof ExpressionError && error.limit,
    );
  assert.equal(await limitOf('($f := function($n){ $f($n + 1) }; $f(0))'), true);
  assert.equal(await limitOf('$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(?=a)(a+)+$/)'), true);
  assert.equal(await limitOf('1 + "a"'), false);
});

test('many concurrent expressions are all evaluated', async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => evaluate(`$sum([${n}, 1])`)));
  assert.deepEqual(
    answers,
    Array.from({ length: 200 }, (_, n) => n + 1),
  );
});

test('the fast path returns what JSONata returns', async () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null));
  const value = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, leaf, tie('array'), tie('object')),
    array: fc.array(tie('value'), { maxLength: 3 }),
    object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
  })).object;
  const path = fc.array(fc.constantFrom('a', 'b', 'c', 'toString'), { maxLength: 4 }).map((p) => ['$', ...p].join('.'));
  await fc.assert(
    fc.asyncProperty(value, path, async (input, expression) => {
      const fast = evaluatePlainPath(expression, { ...scope, input });
      if (!fast) return;
      assert.deepEqual(plain(fast.value), plain(await jsonata(expression).evaluate(input)));
    }),
  );
  function plain(x: unknown): unknown {
    return x === undefined ? undefined : JSON.parse(JSON.stringify(x));
  }
});

test('the journal shows neither secrets nor credential headers', async () => {
  const { value, shown } = await resolveTemplates(
    {
      url: 'https://x/{{$secrets.TOKEN}}',
      headers: { Authorization: 'Bearer abc', accept: 'x' },
      body: { code: '{{$base64encode($secrets.TOKEN)}}', plain: 'swordfish!' },
    },
    evaluate,
  );
  assert.equal((value as { url: string }).url, 'https://x/swordfish');
  const values = new SecretValues({ TOKEN: 'swordfish' });
  assert.deepEqual(values.redact(redactHeaders(shown)).value, {
    url: 'https://x/[redacted]',
    headers: { Authorization: '[redacted]', accept: 'x' },
    body: { code: '[redacted]', plain: '[redacted]!' },
  });
});

test('a payload is checked against a schema, however odd', async () => {
  const schema = {
    type: 'object',
    required: ['bug'],
    properties: { bug: { type: 'integer' } },
    additionalProperties: false,
  };
  assert.deepEqual(await expressions.checkSchema('app', schema, { bug: 1 }), []);
  assert.deepEqual(await expressions.checkSchema('app', schema, { bug: 'x', other: 1 }), [
    { path: '/other', message: 'is not a known member' },
    { path: '/bug', message: 'must be integer' },
  ]);
  await assert.rejects(expressions.checkSchema('app', { type: 'nonsense' }, {}), /schema/);
});

test('an expression reads outputs up to a bound, and those of one node whatever the others have', async () => {
  const nodes = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`n${i}`, { text: 'x'.repeat(250_000) }]));
  const evaluate = (expression: string) => expressions.evaluate('app', expression, { ...scope, nodes });
  await assert.rejects(
    evaluate('$count($keys($nodes))'),
    (error) => error instanceof ExpressionError && error.limit && /name the nodes/.test(error.message),
  );
  assert.equal(await evaluate('$length($nodes.n7.text)'), 250_000);
});

test('an expression whose path would take long to parse is refused before', () => {
  const path = (steps: number) => `{{a${'.a'.repeat(steps)}}}`;
  assert.equal(parseTemplate(path(1_000)).whole, true);
  assert.throws(() => parseTemplate(path(1_001)), ExpressionSyntaxError);
});
