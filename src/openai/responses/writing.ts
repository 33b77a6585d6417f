import { type GenerateDeps, generateChecked, type Written } from '../../answers/generate.ts';
import type { CheckedSentence, Passage } from '../../answers/passages.ts';
import type { ChatMessage } from '../../content/models/llm/messages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { ResponseEvents } from './events.ts';
import { type Files, messageItem, nameFile } from './present.ts';
import type { Annotation, OpenAiResponse, OutputItem, ResponseInput } from './schema.ts';

export const tokensDefault = 4_096;
const nothingFound = 'The sources do not say.';

type Work = {
  id: string;
  draft: OpenAiResponse;
  messages: ChatMessage[];
  passages: Passage[];
  files: Files;
};

/** The text of one response, as a model writes it. */
export class Writing {
  readonly #work: Work;
  readonly #events: ResponseEvents | undefined;
  readonly #annotations: Annotation[] = [];
  #text = '';

  constructor(work: Work, events: ResponseEvents | undefined) {
    this.#work = work;
    this.#events = events;
  }

  async run(deps: GenerateDeps, caller: Caller, given: ResponseInput, signal: AbortSignal): Promise<Written> {
    const { messages, passages } = this.#work;
    const schema = schemaOf(given);
    const request = {
      ...{ model: given.model ?? undefined, messages, passages, schema },
      ...{ tokens: given.max_output_tokens ?? tokensDefault, temperature: given.temperature ?? undefined },
      topP: given.top_p ?? undefined,
    };
    // Output with a schema may be written again until it is valid, so it is sent as a whole.
    const listener = {
      onText: async (text: string) => {
        if (schema === undefined) await this.#append(text);
      },
      onSentence: (sentence: CheckedSentence) => {
        if (schema === undefined) this.#cite(sentence);
        return false;
      },
    };
    const written = await generateChecked(deps, caller, request, listener, signal);
    if (schema !== undefined && written.generated !== undefined) await this.#append(written.generated.text);
    return written;
  }

  /** @param written undefined if the search found nothing, so that no model was asked */
  async finish(written: Written | undefined, call: OutputItem | undefined): Promise<OpenAiResponse> {
    const { draft, id } = this.#work;
    if (written === undefined || written.outcome === 'not_in_sources') await this.#append(nothingFound);
    const generated = written?.generated;
    const reason =
      written?.outcome === 'refused'
        ? ('content_filter' as const)
        : generated?.finish_reason === 'length'
          ? ('max_output_tokens' as const)
          : undefined;
    const status = reason === undefined ? ('completed' as const) : ('incomplete' as const);
    const message = messageItem(id, { status, text: this.#text, annotations: this.#annotations });
    const { prompt_tokens = 0, completion_tokens = 0, total_tokens = 0 } = generated?.usage ?? {};
    return {
      ...draft,
      status,
      incomplete_details: reason === undefined ? null : { reason },
      model: generated === undefined ? draft.model : (generated.model_name ?? generated.model),
      output: [...(call === undefined ? [] : [call]), message],
      usage: {
        input_tokens: prompt_tokens,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: completion_tokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens,
      },
    };
  }

  async #append(text: string): Promise<void> {
    this.#text += text;
    await this.#events?.text(messageItem(this.#work.id, { status: 'in_progress', text: '', annotations: [] }), text);
  }

  #cite({ citations, end }: CheckedSentence): void {
    const { passages, files } = this.#work;
    for (const number of new Set(citations)) {
      const row = passages[number - 1]?.row;
      if (row === undefined) continue;
      this.#annotations.push({ type: 'file_citation', index: end, ...nameFile(row, files) });
    }
  }
}

/** The JSON Schema that the output must match; undefined for text. */
function schemaOf({ text }: ResponseInput): unknown {
  const format = text?.format;
  if (format?.type === 'json_schema') return format.schema;
  return format?.type === 'json_object' ? { type: 'object' } : undefined;
}
