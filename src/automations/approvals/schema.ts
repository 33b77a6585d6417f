import { pageQuery } from '../../http/route/pages.ts';
import { strict } from '../../http/route/route.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { nameSchema } from '../../lib/name-schema.ts';
import { Type } from '../../lib/type.ts';

const optionalText = (description: string) => Type.Optional(Type.String({ description }));
const status = Type.Enum(['waiting', 'answered', 'expired', 'cancelled'], {
  description: '`cancelled`: its run ended, or its node no longer waits.',
});
const form = Type.Unsafe<unknown>({
  ...mapOf(Type.Unknown()),
  description: 'The JSON Schema that `data` of the answer must match.',
});

/** What everyone sees who may answer. */
const shown = {
  id: Type.String({ description: 'apr_…' }),
  status,
  question: Type.String({ description: 'What is asked.' }),
  form,
  expires_at: optionalText('When it expires; absent without a deadline.'),
  created_at: Type.String(),
  closed_at: optionalText('When it was answered, expired or was cancelled.'),
};

export const approvalSchema = Type.Object(
  {
    ...shown,
    answered_by: optionalText(
      'The user (`usr_…`), the developer, `secret key`, or the holder of a link and to whom it was sent.',
    ),
    app: optionalText('The app. This and the members below are only for secret keys and developers.'),
    sandbox: optionalText('The sandbox, if it is not in production.'),
    run: optionalText('The run that waits (`atr_…`).'),
    automation: optionalText('The automation of the run (`aut_…`).'),
    node_id: optionalText('The node that asks.'),
    answer: Type.Optional(Type.Unknown({ description: 'The `data` of the answer.' })),
    users: Type.Optional(Type.Array(Type.String(), { description: 'Users who may answer.' })),
    teams: Type.Optional(Type.Array(Type.String(), { description: 'Teams whose members may answer.' })),
    roles: Type.Optional(Type.Array(Type.String(), { description: 'Roles in `org` that may answer.' })),
    org: optionalText('The organisation of `roles`.'),
    excluded_user: optionalText('The user who invoked the run and may not answer.'),
    excluded_users: Type.Optional(
      Type.Array(Type.String(), {
        description: 'All users who may not answer: they invoked the run or one that led to it.',
      }),
    ),
  },
  { $id: 'Approval', description: 'A question of a run to people. Those who answer see the question, not the run.' },
);

export const listApprovalsQuery = Type.Object({
  ...pageQuery,
  status: Type.Optional(
    Type.Enum(['waiting', 'answered', 'expired', 'cancelled'], { description: 'Default `waiting`.' }),
  ),
  run: Type.Optional(Type.String({ maxLength: 100, description: 'Only the approvals of this run.' })),
});

export const answerSchema = strict({
  data: Type.Unknown({ description: 'The answer, which must match the form.' }),
});

export const linkCreateSchema = strict({
  to: nameSchema({
    description: 'To whom you send the link, as the journal will name its holder.',
  }),
  expires_in_seconds: Type.Optional(
    Type.Integer({ minimum: 60, maximum: 366 * 24 * 3_600, description: 'Default 7 days.' }),
  ),
});

export const linkSchema = Type.Object(
  {
    url: Type.String({ description: 'Shows the question on GET and takes the answer once on POST. Shown only here.' }),
    expires_at: Type.String({ description: 'When the link expires.' }),
  },
  { $id: 'ApprovalLink', description: 'A link by which a person without an account answers an approval.' },
);

export const linkedApprovalSchema = Type.Object(
  {
    status,
    question: Type.String({ description: 'What is asked.' }),
    form,
    sent_to: Type.String({ description: 'To whom the link was sent.' }),
    expires_at: optionalText('When the link or the approval expires, whichever is earlier.'),
  },
  { $id: 'LinkedApproval', description: 'An approval as the holder of a link sees it.' },
);
