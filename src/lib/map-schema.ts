import type { Static, TSchema } from 'typebox';
import { defined } from './defined.ts';
import { Type } from './type.ts';

type MapOptions = {
  /** The lengths that the names of members may have, in characters. */
  names?: { minLength?: number; maxLength?: number };
  maxProperties?: number;
  description?: string;
  [keyword: string]: unknown;
};

/**
 * An object with members of any name. TypeBox's `Record` drops the limits of names, and its pattern for names matches
 * no line break: members with one were neither checked nor sent.
 */
export function mapOf<T extends TSchema>(value: T, { names, ...options }: MapOptions = {}) {
  return Type.Unsafe<Record<string, Static<T>>>({
    type: 'object',
    ...options,
    additionalProperties: value,
    ...defined({ propertyNames: names }),
  });
}
