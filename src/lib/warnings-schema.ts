import { Type } from './type.ts';

/**
 * The schema of what in an accepted request looks like a mistake.
 * @param example the name of a member as `field` gives it
 */
export function warningsOf(example: string, description: string) {
  return Type.Array(
    Type.Object({
      field: Type.String({ description: `The member of the request, such as \`${example}\`.` }),
      message: Type.String({ description: 'What looks like a mistake, for people.' }),
    }),
    { description },
  );
}
