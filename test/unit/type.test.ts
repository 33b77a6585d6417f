import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type as TypeBox } from 'typebox';
import { Type } from '../../src/lib/type.ts';

const options = { description: 'a', default: 1 };
/** A schema of each kind, by the builders given. */
const kinds: Record<string, (build: typeof Type) => object> = {
  Any: (build) => build.Any(options),
  Array: (build) => build.Array(build.String(), options),
  Boolean: (build) => build.Boolean(options),
  Enum: (build) => build.Enum(['a', 'b'], options),
  Integer: (build) => build.Integer(options),
  Literal: (build) => build.Object({ a: build.Literal('a', options), b: build.Literal(1), c: build.Literal(true) }),
  Null: (build) => build.Null(options),
  Number: (build) => build.Number(options),
  Object: (build) => build.Object({ a: build.String(), b: build.Optional(build.Integer()) }, options),
  Optional: (build) => build.Optional(build.Object({ a: build.Optional(build.String(options)) })),
  Partial: (build) => build.Partial(build.Object({ a: build.String(), b: build.Optional(build.Null()) }), options),
  String: (build) => build.String(options),
  Union: (build) => build.Union([build.String(), build.Null()], options),
  Unknown: (build) => build.Unknown(options),
  Unsafe: (build) => build.Optional(build.Unsafe<string>({ $ref: 'a', ...options })),
};

test('each builder of schemas returns what TypeBox returns, with what is hidden in it', () => {
  assert.deepEqual(Object.keys(Type).sort(), Object.keys(kinds).sort());
  for (const [name, build] of Object.entries(kinds)) {
    assert.deepEqual(described(build(Type)), described(build(TypeBox)), name);
    assert.equal(JSON.stringify(build(Type)), JSON.stringify(build(TypeBox)), name);
  }
  for (const build of [Type, TypeBox]) {
    const schema = build.String();
    build.Optional(schema);
    assert.deepEqual(Object.getOwnPropertyNames(schema), ['type', '~kind'], 'what is made optional is not changed');
  }
});

/** A value with the attributes of all its members. */
function described(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(Object.getOwnPropertyDescriptors(value)).map(([name, member]) => [
    name,
    { ...member, value: described(member.value) },
  ]);
}
