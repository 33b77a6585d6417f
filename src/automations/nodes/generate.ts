import { Type } from 'typebox';
import { mapOf } from '../../lib/map-schema.ts';
import { modelName } from '../../llm/operator-models.ts';
import { GenerationError } from '../../llm/service.ts';
import { defineNode, NodeFailure } from './kind.ts';

const messagesMax = 1_000;
const contentCharactersMax = 1_000_000;
const tokensMax = 65_536;
const tokensDefault = 2_048;

const message = Type.Object(
  {
    role: Type.Enum(['system', 'user', 'assistant']),
    content: Type.String({ maxLength: contentCharactersMax }),
  },
  { additionalProperties: false },
);

/** Calls the language model. Its output is only data: it triggers no calls and has no rights. */
export const generate = defineNode({
  kind: 'generate',
  needs: undefined,
  members: Type.Object(
    {
      model: Type.Optional(modelName),
      messages: Type.Array(message, { minItems: 1, maxItems: messagesMax }),
      schema: Type.Optional(mapOf(Type.Unknown())),
      temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
      tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: tokensMax })),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'external',
    timeoutSeconds: 300,
    async run(members, { services, generation }) {
      const { model, messages, schema, temperature, tokens = tokensDefault } = members;
      try {
        return await services.generate(generation, { model, messages, schema, temperature, tokens } as never);
      } catch (error) {
        if (error instanceof GenerationError) throw new NodeFailure(error.code, error.message, error.usage);
        throw error;
      }
    },
  },
});
