import { limits } from './limits.ts';
import { pattern } from './patterns.ts';
import { Type } from './type.ts';

/** A name by which people know something. One of white space alone would show nothing that they could open. */
export const nameSchema = (options: { description?: string } = {}) =>
  Type.String({
    minLength: 1,
    maxLength: limits.nameCharactersMax,
    ...pattern('\\S', 'must not be white space alone'),
    ...options,
  });
