import type { Tool } from '../tool.ts';
import { answerTools } from './answers.ts';
import { automationTools } from './automations.ts';
import { extractionTools } from './extractions.ts';
import { fileTools } from './files.ts';
import { ingestionTools } from './ingestion.ts';
import { knowledgeTools } from './knowledge.ts';
import { kvTools } from './kv.ts';

/** Every tool, in the order of the list that clients see. */
export const tools: readonly Tool[] = [
  ...knowledgeTools,
  ...answerTools,
  ...ingestionTools,
  ...fileTools,
  ...extractionTools,
  ...kvTools,
  ...automationTools,
];
