import { headerToken } from './forms.ts';
import { boolean, integer, oneOf, optionalInteger, secretText, text, url } from './values.ts';

/** The settings for models: embeddings, the language model, reranking. Part of the settings in `config.ts`. */
export const modelSettings = {
  embedder: oneOf(
    'QUARRY_EMBEDDER',
    'lexical',
    ['lexical', 'openai', 'transformers'],
    'How texts are turned into vectors.',
  ),
  embedUrl: url('QUARRY_EMBED_URL', undefined, 'Base URL of an OpenAI-compatible service, up to and including /v1.'),
  embedKey: secretText('QUARRY_EMBED_KEY', 'Key of the embedding service.', headerToken),
  embedModel: text('QUARRY_EMBED_MODEL', undefined, 'Embedding model: its name, or the directory of a local one.'),
  embedDimensions: integer(
    'QUARRY_EMBED_DIMENSIONS',
    1024,
    { min: 8, max: 4_096 },
    'Dimensions of the stored vectors; the lexical embedder always has 1024.',
  ),
  embedModelDimensions: optionalInteger(
    'QUARRY_EMBED_MODEL_DIMENSIONS',
    { min: 8, max: 16_384 },
    'Dimensions that the embedding model returns, if more than are stored. Only for models whose vectors may be truncated (Matryoshka).',
  ),
  embedQueryPrefix: text('QUARRY_EMBED_QUERY_PREFIX', '', 'Text that the embedding model expects before a question.'),
  embedDocumentPrefix: text(
    'QUARRY_EMBED_DOCUMENT_PREFIX',
    '',
    'Text that the embedding model expects before a passage.',
  ),
  embedBatchTexts: integer(
    'QUARRY_EMBED_BATCH',
    64,
    { min: 1, max: 2_048 },
    'Texts in one request to the embedding service.',
  ),
  embedConcurrency: integer(
    'QUARRY_EMBED_CONCURRENCY',
    4,
    { min: 1, max: 256 },
    'Concurrent requests of one app to one embedder; the same number is reserved for other apps.',
  ),
  embedRequestsPerMinute: integer(
    'QUARRY_EMBED_REQUESTS_PER_MINUTE',
    3_000,
    { min: 1, max: 1_000_000 },
    'Maximum number of requests per minute to the embedding service.',
  ),
  embedQueryMs: integer(
    'QUARRY_EMBED_QUERY_MS',
    5_000,
    { min: 1, max: 60_000 },
    "Time a search waits for its query's vector, in milliseconds; then it uses full text only.",
  ),
  llmUrl: url(
    'QUARRY_LLM_URL',
    undefined,
    'Base URL of an OpenAI-compatible chat completions server, up to and including /v1.',
  ),
  llmModel: text('QUARRY_LLM_MODEL', undefined, 'Language model, as its server names it.'),
  llmKey: secretText('QUARRY_LLM_KEY', "Key of the language model's server.", headerToken),
  modelsFile: text(
    'QUARRY_MODELS_FILE',
    undefined,
    'JSON file with further language models and aliases of the operator; see docs/language-models.md.',
  ),
  answersJudge: text(
    'QUARRY_ANSWERS_JUDGE',
    undefined,
    'Language model of the operator, by its name or alias, that judges whether passages support the sentences of answers; see docs/answers.md.',
  ),
  modelCallDays: integer(
    'QUARRY_MODEL_CALL_DAYS',
    30,
    { min: 1, max: 3_650 },
    'Retention of the records of calls of language models, in days.',
  ),
  modelCallContents: boolean(
    'QUARRY_MODEL_CALL_CONTENTS',
    false,
    'Whether these records keep the messages and the text, without the secrets of automations.',
  ),
  llmConcurrency: integer(
    'QUARRY_LLM_CONCURRENCY',
    8,
    { min: 1, max: 1_000 },
    'Concurrent requests of one app to one language model from this process; the same number is reserved for other apps.',
  ),
  llmRunTokens: integer(
    'QUARRY_LLM_RUN_TOKENS',
    1_000_000,
    { min: 0, max: Number.MAX_SAFE_INTEGER },
    'Tokens that the generate nodes of one run, or one structured extraction, may use; 0 for no limit.',
  ),
  llmContextTokens: integer(
    'QUARRY_LLM_CONTEXT_TOKENS',
    16_384,
    { min: 4_096, max: 10_000_000 },
    "Tokens of the language model's context: longer documents are read in pieces.",
  ),
  llmRequestSeconds: integer(
    'QUARRY_LLM_REQUEST_SECONDS',
    300,
    { min: 1, max: 3_600 },
    'Time that one request of a structured extraction may take, in seconds.',
  ),
  rerankUrl: url('QUARRY_RERANK_URL', undefined, 'URL of a reranking service, with its path: …/rerank.'),
  rerankKey: secretText('QUARRY_RERANK_KEY', 'Key of the reranking service.', headerToken),
  rerankModel: text(
    'QUARRY_RERANK_MODEL',
    undefined,
    'Reranking model, for Cohere, Jina and vLLM. Unset: requests have the format of Text Embeddings Inference.',
  ),
  rerankMs: integer(
    'QUARRY_RERANK_MS',
    2_000,
    { min: 1, max: 60_000 },
    'Time a search waits for the reranker, in milliseconds; then it keeps the order from before reranking.',
  ),
  rerankPassages: integer(
    'QUARRY_RERANK_PASSAGES',
    50,
    { min: 1, max: 100 },
    'Passages of a search that are reranked; at least max_results are.',
  ),
};
