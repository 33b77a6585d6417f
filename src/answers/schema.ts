import { quoteStatuses } from '../content/quotes/check.ts';
import { ref, strict } from '../http/route/route.ts';
import { versionMember } from '../knowledge/versions/schema.ts';
import { Type } from '../lib/type.ts';

const title = Type.Optional(Type.String({ description: 'The title of the document.' }));

/** Limits of texts whose quotes are checked. */
export const quoteLimits = { textCharactersMax: 50_000, quotesMax: 50, documentsMax: 20, sourcesMax: 100 } as const;

const quoteStatus = Type.Enum([...quoteStatuses], {
  description:
    '`exact`: the document has these characters. `normalised`: it differs in white space, quotation marks, dashes, hyphens at line ends, the pipes of tables or emphasis, never in case, digits or words. `elided`: its parts stand in this order under one heading. `altered`: the document says something similar, see `difference`. `not_found`: in no document that the caller may read. `too_short`: under three words.',
});

const boxSchema = Type.Object({
  page: Type.Integer({ description: 'The page, from 1.' }),
  left: Type.Number({ description: 'In points from the left edge of the page as it is shown.' }),
  top: Type.Number({ description: 'In points from the upper edge.' }),
  right: Type.Number({ description: 'In points from the left edge.' }),
  bottom: Type.Number({ description: 'In points from the upper edge.' }),
  page_width: Type.Number({ description: 'The width of the page in points.' }),
  page_height: Type.Number({ description: 'Its height.' }),
});

const placeSchema = Type.Object({
  start_byte: Type.Integer({ description: 'Where it begins in the text of the document.' }),
  end_byte: Type.Integer({ description: 'Where it ends; exclusive.' }),
  start_page: Type.Optional(Type.Integer({ description: 'Present if the text has page marks.' })),
  end_page: Type.Optional(Type.Integer({ description: 'Its last page.' })),
  text: Type.String({ description: 'What the document says there.' }),
  boxes: Type.Optional(
    Type.Array(boxSchema, {
      description:
        'With `boxes`: where it stands on the pages of the PDF, one rectangle for each line; empty if unknown.',
    }),
  ),
});

const differenceSchema = Type.Array(
  Type.Object({
    type: Type.Enum(['same', 'only_in_quote', 'only_in_source'], { description: 'Who has these words.' }),
    text: Type.String({ description: 'The words.' }),
  }),
  { description: 'Only if `altered`: the words of the quote and of the document, in their order.' },
);

/** A quote, and where it stands. */
const checkedQuoteSchema = Type.Object(
  {
    text: Type.String({ description: 'The quote.' }),
    start: Type.Optional(Type.Integer({ description: 'Where it begins in `text`, in UTF-16 code units.' })),
    end: Type.Optional(Type.Integer({ description: 'Where it ends; exclusive.' })),
    status: quoteStatus,
    document: Type.Optional(Type.String({ description: 'cdo_…; the document that says this, or something similar.' })),
    source: Type.Optional(Type.String({ description: 'cso_…' })),
    title,
    content_hash: Type.Optional(
      Type.String({ description: 'The version of the document: the SHA-256 of its text, in hexadecimal.' }),
    ),
    version: versionMember,
    places: Type.Optional(Type.Array(placeSchema, { description: 'One, or one for each part of an elided quote.' })),
    difference: Type.Optional(differenceSchema),
  },
  { description: 'A quote, whether a document says it, and where.' },
);

const sentenceStatus = Type.Enum(['quoted', 'cited', 'uncited'], {
  description:
    '`quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a document. `uncited`: neither.',
});

const sentenceSchema = Type.Object({
  start: Type.Integer({ description: 'Where it begins in `text`, in UTF-16 code units.' }),
  end: Type.Integer({ description: 'Where it ends; exclusive.' }),
  status: sentenceStatus,
});

const statementSchema = Type.Object(
  {
    app: Type.String({ description: 'dap_…' }),
    sandbox: Type.String({ description: 'sbx_…' }),
    verified_at: Type.String({ description: 'When the quotes were checked.' }),
    text_digest: Type.Optional(Type.String({ description: 'The SHA-256 of `text`, in hexadecimal.' })),
    quotes: Type.Array(checkedQuoteSchema, { description: 'The quotes, in their order.' }),
    sentences: Type.Optional(Type.Array(sentenceSchema, { description: 'Of `text`.' })),
  },
  { description: 'What the signature covers.' },
);

/** A statement about quotes, with its signature. */
export const signedStatementSchema = Type.Object(
  {
    statement: statementSchema,
    key_id: Type.String({ description: 'The id of the key that signed it.' }),
    public_key: Type.String({ description: 'The public key, an Ed25519 key of 32 bytes, in hexadecimal.' }),
    signature: Type.String({
      description: 'Ed25519 over the statement, in hexadecimal. The guide "Answers" describes the bytes.',
    }),
  },
  { $id: 'SignedCitations', description: 'What was found about quotes, signed with the key of the audit log.' },
);

const sources = Type.Optional(
  Type.Array(Type.String(), {
    ...{ minItems: 1, maxItems: quoteLimits.sourcesMax },
    description: 'cso_…; only these sources. By default, everything that the caller may read.',
  }),
);
const agent = Type.Optional(
  Type.String({ description: 'agt_… or the lookup key of the agent; only its sources. Not with `sources`.' }),
);

const boxes = Type.Optional(
  Type.Boolean({
    description: 'Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false.',
  }),
);

export const verifySchema = strict({
  text: Type.Optional(
    Type.String({
      ...{ minLength: 1, maxLength: quoteLimits.textCharactersMax },
      description:
        'A text from anywhere. What stands in quotation marks, and blocks of lines with >, are its quotes: at most 50.',
    }),
  ),
  quotes: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 10_000 }), {
      ...{ minItems: 1, maxItems: quoteLimits.quotesMax },
      description: 'The quotes themselves, without quotation marks. Exactly one of `text` and `quotes`.',
    }),
  ),
  documents: Type.Optional(
    Type.Array(Type.String(), {
      ...{ minItems: 1, maxItems: quoteLimits.documentsMax },
      description:
        'cdo_…; only these documents. In `text`, [1] cites the first of them. Not with `sources` or `agent`.',
    }),
  ),
  versions: Type.Optional(
    Type.Array(
      strict({
        document: Type.String({ description: 'cdo_…; one of `documents`.' }),
        version: Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'The number of its version.' }),
      }),
      {
        ...{ minItems: 1, maxItems: quoteLimits.documentsMax },
        description: 'Which versions of `documents` to read. By default, the current ones.',
      },
    ),
  ),
  sources,
  agent,
  boxes,
});

const citationSchema = Type.Object(
  {
    number: Type.Integer({ description: 'The number by which the text cites it, as in [1].' }),
    document: Type.String({ description: 'cdo_…' }),
    source: Type.String({ description: 'cso_…' }),
    chunk: Type.String({ description: 'cim_…; the passage.' }),
    content_hash: Type.String({ description: 'The version of the document: the SHA-256 of its text.' }),
    version: versionMember,
    title,
    source_url: Type.Optional(Type.String({ description: 'Where the document comes from.' })),
    fragment: Type.Optional(Type.String({ description: 'Leads to the heading on the page at `source_url`.' })),
    heading_path: Type.Array(Type.String(), { description: 'The headings above the passage.' }),
    start_byte: Type.Integer({ description: 'Where the passage begins in the text of the document.' }),
    end_byte: Type.Integer({ description: 'Where it ends; exclusive.' }),
    start_line: Type.Integer({ description: 'Its first line, from 1.' }),
    end_line: Type.Integer({ description: 'Its last line.' }),
    start_page: Type.Optional(Type.Integer({ description: 'Present if the text has page marks.' })),
    end_page: Type.Optional(Type.Integer({ description: 'Its last page.' })),
    content: Type.String({ description: 'The passage.' }),
  },
  { $id: 'Citation', description: 'A passage that an answer cites or quotes.' },
);

const usage = {
  prompt_tokens: Type.Integer({ minimum: 0, description: 'As the provider counts them.' }),
  completion_tokens: Type.Integer({ minimum: 0, description: 'As the provider counts them.' }),
  total_tokens: Type.Integer({ minimum: 0, description: 'As the provider counts them.' }),
};

/** What a judge did for an answer. */
export const judgeSchema = Type.Object(
  {
    model: Type.Union([Type.String(), Type.Null()], { description: 'The model; null if it wrote nothing usable.' }),
    judged: Type.Integer({ minimum: 0, description: 'The number of sentences with a verdict, removed ones included.' }),
    error: Type.Union([Type.String(), Type.Null()], {
      description:
        'Why it gave no further verdicts: `llm_failed`, `llm_timeout`, `invalid_output`, `refused`, `token_budget_exceeded`, or another code of an error; null if it did not fail.',
    }),
    usage: Type.Object(usage, { description: 'The tokens of its requests.' }),
  },
  { description: 'Only if the operator has set a judge and a model was asked: what it did.' },
);

const answerQuoteSchema = Type.Object({
  ...checkedQuoteSchema.properties,
  citation: Type.Optional(Type.Integer({ description: 'The number of the citation that it stands in.' })),
});

/** A sentence of an answer. */
export const answerSentenceSchema = Type.Object(
  {
    text: Type.String({ description: 'The sentence.' }),
    start: Type.Integer({ description: 'Where it begins in the text of the answer, in UTF-16 code units.' }),
    end: Type.Integer({ description: 'Where it ends; exclusive.' }),
    status: Type.Enum(['supported', 'quoted', 'cited', 'uncited'], {
      description:
        '`supported`: the judge says that the passages support it. Otherwise `quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a passage. `uncited`: neither.',
    }),
    unsupported: Type.Boolean({
      description:
        'Whether it cites nothing, has a quote that is altered or missing, or is not supported in the verdict of the judge.',
    }),
    verdict: Type.Optional(
      Type.Enum(['supported', 'not_supported'], {
        description: 'Of the judge, if the operator has set one and it ruled on this sentence.',
      }),
    ),
    citations: Type.Array(Type.Integer(), { description: 'The numbers of the passages that it cites.' }),
    quotes: Type.Array(answerQuoteSchema, { description: 'Its quotes, in their order.' }),
  },
  { $id: 'AnswerSentence', description: 'A sentence of an answer, with what was checked.' },
);

export const answerSchema = Type.Object(
  {
    status: Type.Enum(['answered', 'extracts', 'not_in_sources', 'unsupported', 'model_refused'], {
      description:
        '`extracts`: the best passages themselves, because the server has no model. `not_in_sources`: nothing was found, or the model says that it is not there. `unsupported`: there was a sentence without support (`refuse`), or none with it (`remove`). `model_refused`: the model refused to write. In the last three, `text` is empty.',
    }),
    text: Type.String({ description: 'The answer in Markdown, with citations such as [1].' }),
    sentences: Type.Array(ref(answerSentenceSchema), { description: 'The sentences of the text, in their order.' }),
    citations: Type.Array(ref(citationSchema), { description: 'What the text cites or quotes.' }),
    removed: Type.Integer({ description: 'The number of sentences that were removed.' }),
    incomplete: Type.Boolean({ description: 'Whether the model reached the limit of its text.' }),
    model: Type.Union([Type.String(), Type.Null()], { description: 'The model that wrote it.' }),
    usage: Type.Union([Type.Object(usage), Type.Null()], {
      description: 'The tokens of the request to the model; null without one, and if it was ended.',
    }),
    judge: Type.Optional(judgeSchema),
  },
  { $id: 'Answer', description: 'A text from sources, with what was checked.' },
);

export const answerCreateSchema = strict({
  query: Type.String({ minLength: 1, maxLength: 10_000, description: 'The question.' }),
  sources,
  agent,
  model: Type.Optional(
    Type.String({
      ...{ minLength: 1, maxLength: 200 },
      description: 'A model or an alias of the app or of the operator. By default, the default of the operator.',
    }),
  ),
  instructions: Type.Optional(
    Type.String({ minLength: 1, maxLength: 10_000, description: 'More for the model, such as a tone or a length.' }),
  ),
  unsupported: Type.Optional(
    Type.Enum(['mark', 'remove', 'refuse'], {
      description:
        'What happens to a sentence that cites nothing, misquotes, or is not supported in the verdict of a judge: it is marked (the default), it is removed, or there is no answer.',
    }),
  ),
  max_results: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 50, description: 'The number of passages that the model reads. Default 12.' }),
  ),
  max_output_tokens: Type.Optional(
    Type.Integer({ minimum: 16, maximum: 16_384, description: 'The most that the model writes. Default 1024.' }),
  ),
  boxes,
  stream: Type.Optional(
    Type.Boolean({
      description:
        'Sends events instead (text/event-stream): `delta` with text as it arrives (only with `mark`), `sentence` with each sentence after its check (with a judge, after its verdict, up to eight together), then `answer` with the whole answer, or `error`.',
    }),
  ),
});
