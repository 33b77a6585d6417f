import { pageTypes } from '../content/parse/html/page-types.ts';
import { fileSchema } from '../files/schema.ts';
import { ref, strict } from '../http/route/route.ts';
import { integerRange } from '../http/route/validation.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { pattern } from '../lib/patterns.ts';
import { Type } from '../lib/type.ts';
import { modelName } from '../llm/operator-models.ts';

const optionalText = Type.Optional(Type.String());
const kind = Type.Enum(['document', 'link', 'site']);
const optionalPaths = Type.Optional(
  Type.Array(Type.String(), { description: 'An option of the site. Omitted in lists.' }),
);
const sitemapUse = Type.Enum(['include', 'skip', 'only']);
const errorMembers = Type.Object({ code: Type.String(), message: Type.String() });

export const extractionOutputSchema = Type.Object(
  {
    id: Type.String({ description: 'exo_…' }),
    ordinal: Type.Integer({ description: 'The position of the output, from 0.' }),
    source_url: optionalText,
    state: Type.Enum(['done', 'failed']),
    error: Type.Optional(errorMembers),
    title: optionalText,
    metadata: mapOf(Type.Unknown(), { description: 'Metadata stated in the source.' }),
    page_type: Type.Optional(Type.Enum([...pageTypes], { description: 'The kind of web page.' })),
    structured: Type.Optional(
      mapOf(Type.String(), {
        description:
          'Structured data of a web page about its subject, unchanged: type, name, author, published, modified, price, currency, availability, rating, …',
      }),
    ),
    ocr: Type.Optional(
      Type.Object(
        {
          pages: Type.Array(Type.Integer(), { description: 'The page numbers, from 1.' }),
          confidence: Type.Number({ description: 'The mean confidence of the recognised characters, from 0 to 1.' }),
        },
        { description: 'The pages whose text was recognised by OCR.' },
      ),
    ),
    truncated: Type.Optional(
      Type.Boolean({ description: 'The document or page exceeds a limit, and the rest was not read.' }),
    ),
    file: Type.Optional(ref(fileSchema)),
    data: Type.Optional(
      Type.Unknown({
        description:
          'With a schema: the data, valid against it. For pages of a site and attachments, it is only in data_file.',
      }),
    ),
    spans: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'The JSON Pointer of the value in data.' }),
          start: Type.Integer(),
          end: Type.Integer({ description: 'The end of the value (exclusive).' }),
        }),
        {
          description:
            'Positions of the values of data in the Markdown, in UTF-16 code units. A value that does not occur there has no span.',
        },
      ),
    ),
    data_file: Type.Optional(ref(fileSchema)),
    data_error: Type.Optional(Type.Object(errorMembers.properties, { description: 'Why there is no data.' })),
    created_at: Type.String(),
  },
  { $id: 'ExtractionOutput', description: 'The text of one document or page.' },
);

export const extractionSchema = Type.Object(
  {
    id: Type.String({ description: 'ext_…' }),
    kind,
    state: Type.Enum(['running', 'done', 'failed']),
    destination: Type.Object({ kind: Type.Enum(['config', 'storage']), path_prefix: optionalText }),
    file: optionalText,
    url: optionalText,
    mode: Type.Optional(Type.Enum(['link', 'site'])),
    max_pages: Type.Optional(Type.Integer()),
    include_paths: optionalPaths,
    exclude_paths: optionalPaths,
    max_depth: Type.Optional(Type.Integer()),
    allow_subdomains: Type.Optional(Type.Boolean()),
    ignore_robots: Type.Optional(Type.Boolean()),
    sitemap: Type.Optional(sitemapUse),
    schema: Type.Optional(mapOf(Type.Unknown(), { description: 'The JSON Schema of the data. Omitted in lists.' })),
    instructions: Type.Optional(Type.String({ description: 'Omitted in lists.' })),
    model: Type.Optional(
      Type.String({ description: 'The model or alias that extracts the data. Omitted in lists, and for the default.' }),
    ),
    agent: optionalText,
    org: optionalText,
    failure_reason: Type.Optional(
      Type.Enum(['fetch_failed', 'unsupported_content', 'extraction_failed', 'timeout', 'internal_error']),
    ),
    error: Type.Optional(errorMembers),
    output_count: Type.Integer({ description: 'The number of finished outputs.' }),
    byte_count: Type.Integer({ description: 'The total size in bytes of the outputs’ text when it was written.' }),
    outputs: Type.Optional(Type.Array(ref(extractionOutputSchema))),
    left_out: Type.Optional(
      Type.Array(Type.Object({ url: Type.String(), reason: Type.String() }), {
        description:
          'The first hundred pages of a site that were skipped, with the reason: robots, path, trap, generated, duplicate or redirected_away.',
      }),
    ),
    progress: Type.Object({ discovered: Type.Integer(), done: Type.Integer(), failed: Type.Integer() }),
    waiting_count: Type.Optional(
      Type.Integer({
        description:
          'The number of pages that are read and become outputs once enough pages show what the site repeats. Omitted when none waits.',
      }),
    ),
    data_progress: Type.Optional(
      Type.Object(
        {
          pending: Type.Integer({ description: 'The number of outputs that wait for their data.' }),
          done: Type.Integer(),
          failed: Type.Integer(),
          pieces: Type.Integer({ description: 'The number of pieces into which texts were divided so far.' }),
          pieces_done: Type.Integer(),
        },
        { description: 'Present if the extraction has a schema.' },
      ),
    ),
    usage: Type.Optional(
      Type.Object(
        {
          total_tokens: Type.Integer({ description: 'A request in progress counts with the maximum that it may use.' }),
          requests: Type.Integer(),
        },
        { description: 'What the language model used. Present if the extraction has a schema.' },
      ),
    ),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Extraction', description: 'A job that turns a document, a page or a site into Markdown.' },
);

function pathPatterns(description: string) {
  const path = Type.String({ minLength: 1, maxLength: 1_000, ...pattern('^[/*]', 'must begin with / or *') });
  return Type.Array(path, {
    maxItems: 100,
    description: `${description} Patterns are prefixes, in which * matches anything and a final $ matches the end.`,
  });
}

/** The members that request data from each output. */
const structureMembers = {
  schema: Type.Optional(
    mapOf(Type.Unknown(), {
      description:
        'A JSON Schema (2020-12) for data that a language model extracts from each text; at most 64 KiB. References must stay within the schema. The extraction then always runs in the background (202).',
    }),
  ),
  instructions: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 10_000,
      description: 'Instructions for extracting the data. Requires schema.',
    }),
  ),
  model: Type.Optional({
    ...modelName,
    description: 'The model or alias that extracts the data. Default: as the operator set it. Requires schema.',
  }),
};

export const extractionCreateSchema = strict({
  destination_kind: Type.Enum(['config', 'storage'], { description: 'Where outputs are written.' }),
  destination_path: Type.Optional(
    Type.String({
      maxLength: limits.virtualPathCharactersMax,
      description: 'The path prefix of the outputs. Required if `destination_kind` is config.',
    }),
  ),
  file: Type.Optional(Type.String({ description: 'fil_…; the document to read.' })),
  url: Type.Optional(Type.String({ maxLength: limits.urlCharactersMax, description: 'The page or site to read.' })),
  mode: Type.Optional(Type.Enum(['link', 'site'])),
  max_pages: Type.Optional(
    Type.Integer({ ...integerRange, description: 'Maximum number of pages of a site. Default 100.' }),
  ),
  include_paths: Type.Optional(pathPatterns('Only pages whose path matches one of these are read.')),
  exclude_paths: Type.Optional(pathPatterns('Pages whose path matches one of these are not read.')),
  max_depth: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.integerMax,
      description: 'Maximum number of links from the start page.',
    }),
  ),
  allow_subdomains: Type.Optional(
    Type.Boolean({ description: 'Also read pages on subdomains of the start page’s host.' }),
  ),
  ignore_robots: Type.Optional(
    Type.Boolean({ description: 'Read pages that robots.txt disallows. Requires a secret key.' }),
  ),
  sitemap: Type.Optional(
    Type.Enum(['include', 'skip', 'only'], {
      description: 'Whether to use sitemaps to find pages. Default include.',
    }),
  ),
  ...structureMembers,
  agent: Type.Optional(Type.String({ description: 'agt_…; the agent that owns the job and its outputs.' })),
  org: Type.Optional(Type.String({ description: 'org_…' })),
});
