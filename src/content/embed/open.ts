import type { StemLanguage } from '../terms.ts';
import type { Embedder } from './embedder.ts';
import { inLanes, type SharedEmbedder } from './in-lanes.ts';
import { lexicalEmbedder } from './lexical.ts';
import { openAiEmbedder } from './openai.ts';
import { transformersEmbedder } from './transformers.ts';

type EmbedderSettings = {
  embedder: 'lexical' | 'openai' | 'transformers';
  searchLanguage: StemLanguage;
  embedUrl: string | undefined;
  embedKey: string | undefined;
  embedModel: string | undefined;
  embedDimensions: number;
  embedRequestsPerMinute: number;
};

/** The embedder that the settings name, shared by all apps. */
export function openEmbedder(settings: EmbedderSettings): SharedEmbedder {
  return inLanes(open(settings));
}

function open(settings: EmbedderSettings): Embedder {
  const { embedUrl, embedKey, embedModel = '', embedDimensions: dimensions } = settings;
  switch (settings.embedder) {
    case 'lexical':
      return lexicalEmbedder(settings.searchLanguage);
    case 'openai':
      return openAiEmbedder({
        baseUrl: embedUrl ?? '',
        ...(embedKey === undefined ? {} : { apiKey: embedKey }),
        model: embedModel,
        dimensions,
        requestsPerMinuteMax: settings.embedRequestsPerMinute,
      });
    case 'transformers':
      return transformersEmbedder({ model: embedModel, dimensions });
  }
}
