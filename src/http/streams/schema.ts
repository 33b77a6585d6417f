import { Type } from '../../lib/type.ts';

export const streamPositionSchema = Type.Object(
  {
    position: Type.Integer({ description: 'The position in the stream.' }),
    message: Type.Optional(Type.String({ description: 'Why events are missing. Only in `reset`.' })),
  },
  { $id: 'StreamPosition', description: 'The data of the events `ready` and `reset`.' },
);
