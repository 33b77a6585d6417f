import type { Static, TSchema } from 'typebox';
import { ref, strict } from '../../http/route/route.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { listOf, searchSchema } from '../schema.ts';

/* The shapes of OpenAI's Responses API, limited to what Quarry supports. */

/** Limits of a request. */
export const responseLimits = {
  inputCharactersMax: 200_000,
  inputItemsMax: 500,
  storesMax: 100,
  /** Responses that one response continues, at most. */
  previousMax: 100,
  /** Stored responses of production or of a sandbox, and of one user in it. */
  storedMax: 100_000,
  storedOfUserMax: 1_000,
  daysKept: 30,
} as const;

const text = Type.String();
const orNull = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });
const optional = <T extends TSchema>(schema: T, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { description }));
const words = mapOf(Type.String({ maxLength: 512 }), { names: { maxLength: 64 }, maxProperties: 16 });

const fileSearchSchema = strict({
  type: Type.Literal('file_search', { description: 'The only tool.' }),
  vector_store_ids: Type.Array(Type.String(), {
    ...{ minItems: 1, maxItems: responseLimits.storesMax },
    description: 'vs_…; the vector stores that are searched.',
  }),
  max_num_results: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Default 12.' })),
  filters: optional(mapOf(Type.Unknown()), 'A comparison or a compound filter over attributes.'),
  ranking_options: searchSchema.properties.ranking_options,
});

const formatSchema = Type.Union([
  strict({ type: Type.Literal('text') }),
  strict({ type: Type.Literal('json_object') }),
  strict({
    type: Type.Literal('json_schema'),
    name: Type.String({ minLength: 1, maxLength: 64 }),
    schema: mapOf(Type.Unknown(), { description: 'The JSON Schema of the output.' }),
    description: optional(text, 'Without effect.'),
    strict: optional(Type.Boolean(), 'The output is checked in any case.'),
  }),
]);

export const responseCreateSchema = strict({
  model: optional(
    Type.String({ minLength: 1, maxLength: 200 }),
    'A model or an alias of the app or of the operator. By default, the default of the operator.',
  ),
  input: Type.Union(
    [
      Type.String({ minLength: 1, maxLength: responseLimits.inputCharactersMax }),
      Type.Array(mapOf(Type.Unknown()), { minItems: 1, maxItems: responseLimits.inputItemsMax }),
    ],
    {
      description:
        'A text, or messages with `role` and `content`: a text, or parts of the type `input_text` or `output_text`. Items of an earlier `output` may be among them. Pictures and files are 400.',
    },
  ),
  instructions: optional(
    Type.String({ maxLength: 50_000 }),
    'More for the model. Not carried over to later responses.',
  ),
  tools: optional(Type.Array(fileSearchSchema, { maxItems: 1 }), 'At most one `file_search`.'),
  tool_choice: optional(
    Type.Union([Type.Enum(['auto', 'none', 'required']), strict({ type: Type.Literal('file_search') })]),
    '`none` turns the search off. Otherwise the vector stores are searched for the last message.',
  ),
  include: optional(
    Type.Array(Type.Enum(['file_search_call.results']), { maxItems: 10 }),
    '`file_search_call.results` returns the passages found.',
  ),
  stream: optional(Type.Boolean(), 'Sends events instead (text/event-stream).'),
  store: optional(Type.Boolean(), 'Whether the response is kept for 30 days. Default true.'),
  previous_response_id: optional(text, 'resp_…; a stored response that this one continues.'),
  metadata: optional(words, 'Up to 16 texts.'),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 }), 'As the model takes it.'),
  top_p: optional(Type.Number({ minimum: 0, maximum: 1 }), 'As the model takes it.'),
  max_output_tokens: optional(
    Type.Integer({ minimum: 16, maximum: 65_536 }),
    'The most that the model writes. Default 4096.',
  ),
  text: optional(strict({ format: optional(formatSchema, 'Default `text`.') }), 'The format of the text.'),
  parallel_tool_calls: optional(Type.Boolean(), 'Without effect: there is one tool.'),
  truncation: optional(Type.Literal('disabled'), 'A conversation that does not fit the model is an error.'),
  background: optional(Type.Literal(false), 'Must be false.'),
});
export type ResponseInput = Static<typeof responseCreateSchema>;

const annotationSchema = Type.Object({
  type: Type.Literal('file_citation'),
  index: Type.Integer({ description: 'Where the sentence that cites the file ends, in UTF-16 code units.' }),
  file_id: text,
  filename: text,
});

const outputTextSchema = Type.Object({
  type: Type.Literal('output_text'),
  text: Type.String({ description: 'With citations such as [1], in the order of the passages found.' }),
  annotations: Type.Array(annotationSchema, { description: 'One for each file that a sentence cites.' }),
  logprobs: Type.Array(Type.Unknown(), { description: 'Always empty.' }),
});

const messageSchema = Type.Object({
  id: text,
  type: Type.Literal('message'),
  status: Type.Enum(['in_progress', 'completed', 'incomplete']),
  role: Type.Literal('assistant'),
  content: Type.Array(outputTextSchema),
});

const searchCallSchema = Type.Object({
  id: text,
  type: Type.Literal('file_search_call'),
  status: Type.Enum(['in_progress', 'searching', 'completed']),
  queries: Type.Array(text, { description: 'What was searched for.' }),
  results: orNull(
    Type.Array(
      Type.Object({
        file_id: text,
        filename: text,
        score: Type.Number(),
        attributes: mapOf(Type.Unknown()),
        text,
      }),
    ),
    'The passages, if `include` asks for them.',
  ),
});

export const responseSchema = Type.Object(
  {
    id: Type.String({ description: 'resp_…' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Seconds since 1970.' }),
    status: Type.Enum(['in_progress', 'completed', 'incomplete', 'failed']),
    error: orNull(Type.Object({ code: text, message: text }), 'Why it failed, in a stream.'),
    incomplete_details: orNull(
      Type.Object({ reason: Type.Enum(['max_output_tokens', 'content_filter']) }),
      'Why it is incomplete: the text reached its limit, or the model refused to write more.',
    ),
    instructions: orNull(text, 'As requested.'),
    max_output_tokens: orNull(Type.Integer(), 'As requested.'),
    model: Type.String({ description: 'The model that wrote it.' }),
    output: Type.Array(Type.Union([searchCallSchema, messageSchema]), {
      description: 'A search if there was one, then the message.',
    }),
    parallel_tool_calls: Type.Boolean({ description: 'As requested.' }),
    previous_response_id: orNull(text, 'The response that it continues.'),
    store: Type.Boolean({ description: 'Whether it is stored.' }),
    temperature: orNull(Type.Number(), 'As requested.'),
    text: Type.Object({ format: mapOf(Type.Unknown(), { description: 'The format of the text, as requested.' }) }),
    tool_choice: Type.Union([text, mapOf(Type.Unknown())], { description: 'As requested.' }),
    tools: Type.Array(mapOf(Type.Unknown()), { description: 'As requested.' }),
    top_p: orNull(Type.Number(), 'As requested.'),
    truncation: Type.Literal('disabled', { description: 'Nothing is left out of a conversation.' }),
    background: Type.Literal(false, { description: 'Always false.' }),
    usage: orNull(
      Type.Object({
        input_tokens: Type.Integer({ description: 'As the provider counts them.' }),
        input_tokens_details: Type.Object(
          { cached_tokens: Type.Integer({ description: 'Always 0.' }) },
          { description: 'Details of the tokens of the input.' },
        ),
        output_tokens: Type.Integer({ description: 'As the provider counts them.' }),
        output_tokens_details: Type.Object(
          { reasoning_tokens: Type.Integer({ description: 'Always 0.' }) },
          { description: 'Details of the tokens of the output.' },
        ),
        total_tokens: Type.Integer({ description: 'The sum of both.' }),
      }),
      'The tokens of the request to the model; 0 if none was asked.',
    ),
    metadata: mapOf(text),
  },
  { $id: 'OpenAIResponse', description: 'A text of a model, and the search that it rests on.' },
);
export type OpenAiResponse = Static<typeof responseSchema>;
export type OutputItem = OpenAiResponse['output'][number];
export type Annotation = Static<typeof annotationSchema>;

const inputItemSchema = Type.Object(
  {
    id: text,
    type: Type.Literal('message'),
    status: Type.Literal('completed'),
    role: Type.Enum(['user', 'assistant', 'system', 'developer']),
    content: Type.Array(Type.Object({ type: Type.Enum(['input_text', 'output_text']), text })),
  },
  { $id: 'OpenAIInputItem', description: 'A message of the input of a response.' },
);
export type InputItem = Static<typeof inputItemSchema>;
export const inputItemsSchema = listOf(ref(inputItemSchema));

export const responseDeletedSchema = Type.Object({
  id: text,
  object: Type.Literal('response.deleted'),
  deleted: Type.Literal(true),
});

export const inputItemsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Default 20.' })),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Default desc: the last message first.' })),
  after: Type.Optional(Type.String({ description: 'An id: the page starts after it.' })),
});
