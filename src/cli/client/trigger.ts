import type { TSchema } from 'typebox';
import { ownEventNames, payloadOf } from '../../events/schema.ts';
import { findNearest } from '../../lib/nearest.ts';
import { UsageError } from '../errors.ts';
import { readData } from './resources.ts';
import { jsonLine, type Session } from './session.ts';

/**
 * `quarry trigger <event>`: emits a sample of an event of Quarry. Its payload has every member of the description, ids
 * that name nothing, and `"test": true`, so that no receiver can take it for a real one.
 */
export async function trigger(session: Session, name: string, { data }: { data?: string }): Promise<number> {
  const payload = payloadOf(name);
  if (payload === undefined) throw new UsageError(describeUnknown(name));
  const changes = data === undefined ? {} : await readData(data);
  const sample = sampleOf(payload, name.endsWith('failed')) as Record<string, unknown>;
  const body = { name, payload: { ...sample, ...changes, test: true } };
  const emitted = await session.client.send<{ id: string }>('POST', '/events', { body });
  await session.print(session.json ? jsonLine(emitted) : `${emitted.id}\n`);
  return 0;
}

function describeUnknown(name: string): string {
  const nearest = findNearest(name, ownEventNames);
  const hint = nearest === undefined ? `Events: ${ownEventNames.join(', ')}.` : `Did you mean "${nearest}"?`;
  return `Quarry emits no event "${name}". ${hint} \`quarry events emit\` emits events of your own.`;
}

/** A value of the schema. Ids are those of nothing; of several states it has the one that fits the event. */
function sampleOf(schema: TSchema, isFailure: boolean): unknown {
  const { type, enum: values, properties, description = '' } = schema as Described;
  if (values !== undefined) return isFailure && values.includes('failed') ? 'failed' : values[0];
  if (properties !== undefined) {
    const shown = Object.entries(properties).filter(([name]) => isFailure || !/^(error|failure_reason)$/.test(name));
    return Object.fromEntries(shown.map(([name, member]) => [name, sampleOf(member, isFailure)]));
  }
  if (type === 'integer') return 1;
  const prefix = /`(\w+_)…`/.exec(description)?.[1];
  return prefix === undefined ? 'sample' : `${prefix}${'0'.repeat(idCharacters)}`;
}

type Described = { type?: string; enum?: unknown[]; properties?: Record<string, TSchema>; description?: string };

/** Characters of an id after its prefix. */
const idCharacters = 22;
