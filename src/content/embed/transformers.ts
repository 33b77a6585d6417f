import { type Embedder, EmbeddingError, normalize } from './embedder.ts';

type TransformersOptions = {
  /** A directory with an ONNX model, or a name on the model hub. */
  model: string;
  dimensions: number;
  similarityFloor?: number;
};

type Extractor = (
  texts: string[],
  options: { pooling: 'mean'; normalize: boolean },
) => Promise<{ dims: number[]; data: ArrayLike<number> }>;

/**
 * Not a dependency of the project. To use a local model, install it as well (`npm install
 * @huggingface/transformers`).
 */
const packageName = '@huggingface/transformers';

/** A local ONNX model, loaded when the first text is embedded. */
export function transformersEmbedder(options: TransformersOptions): Embedder {
  let loading: Promise<Extractor> | undefined;
  const load = () => {
    loading ??= loadExtractor(options.model).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
  return {
    model: `transformers:${options.model}:${options.dimensions}`,
    dimensions: options.dimensions,
    local: false,
    fusionWeight: 1,
    similarityFloor: options.similarityFloor ?? 0.2,
    batchTexts: 16,
    embed: async (texts) => {
      if (texts.length === 0) return [];
      const extract = await load();
      const output = await extract(texts, { pooling: 'mean', normalize: true }).catch((error: unknown) => {
        throw new EmbeddingError('The local embedding model failed.', { cause: error });
      });
      const [rows, columns] = output.dims;
      if (rows !== texts.length || columns !== options.dimensions)
        throw new EmbeddingError(`The local embedding model returns ${columns} dimensions, not ${options.dimensions}.`);
      return texts.map((_text, i) =>
        normalize(
          Float32Array.from({ length: options.dimensions }, (_v, j) => output.data[i * options.dimensions + j] ?? 0),
        ),
      );
    },
  };
}

async function loadExtractor(model: string): Promise<Extractor> {
  let library: unknown;
  try {
    library = await import(packageName);
  } catch (error) {
    throw new EmbeddingError(`The package ${packageName} is not installed.`, { cause: error });
  }
  const make = (library as { pipeline?: unknown }).pipeline;
  if (typeof make !== 'function') throw new EmbeddingError(`The package ${packageName} has no pipeline.`);
  try {
    return (await make('feature-extraction', model)) as Extractor;
  } catch (error) {
    throw new EmbeddingError(`The model ${model} cannot be loaded.`, { cause: error });
  }
}
