import { Type } from '../../lib/type.ts';
import type { SourceKind } from './kind.ts';
import { language } from './payload.ts';

export const documents: SourceKind = {
  type: 'knowledge/documents',
  label: 'Documents',
  description: 'Documents that are pushed, as text, bytes or uploaded files.',
  payload: Type.Object({ language }),
  pushable: true,
};
