import type { Quarry } from '@quarry/client';

type Passage = { title: string; content: string };

/**
 * A tool for an agent, in the form that most frameworks take: a name, a description and a JSON Schema for the model, and
 * a function that returns text.
 */
export function lookUpTool(quarry: Quarry) {
  return {
    name: 'look_up',
    description: 'Finds passages in the handbook of the shop that answer a question.',
    inputSchema: {
      type: 'object',
      properties: { question: { type: 'string', description: 'A question in plain words.' } },
      required: ['question'],
      additionalProperties: false,
    },
    async execute({ question }: { question: string }): Promise<string> {
      const run = await quarry.automations.run('look-up', { payload: { question } });
      if (run.status !== 'completed') throw new Error(`The run ${run.id} failed: ${JSON.stringify(run.error)}`);
      const passages = run.result as Passage[];
      return passages.map(({ title, content }) => `${title}: ${content}`).join('\n\n') || 'Nothing was found.';
    },
  };
}
