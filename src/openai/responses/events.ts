import type { ServerEvent } from '../../http/streams/work-stream.ts';
import { AppError } from '../../lib/errors.ts';
import type { OpenAiResponse, OutputItem } from './schema.ts';

type Send = (event: ServerEvent) => Promise<void>;
type Message = Extract<OutputItem, { type: 'message' }>;
type SearchCall = Extract<OutputItem, { type: 'file_search_call' }>;

/** The events of one response, in the order and with the numbers that OpenAI's clients expect. */
export class ResponseEvents {
  readonly #send: Send;
  #sequence = 0;
  /** The response as it was when the stream began. */
  #begun: OpenAiResponse | undefined;
  #index = 0;
  #message: Message | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  async begin(response: OpenAiResponse): Promise<void> {
    this.#begun = response;
    await this.#emit('response.created', { response });
    await this.#emit('response.in_progress', { response });
  }

  async search(call: SearchCall): Promise<void> {
    const at = { output_index: this.#index };
    const item: SearchCall = { ...call, status: 'in_progress', results: null };
    await this.#emit('response.output_item.added', { ...at, item });
    for (const step of ['in_progress', 'searching', 'completed'])
      await this.#emit(`response.file_search_call.${step}`, { ...at, item_id: call.id });
    await this.#emit('response.output_item.done', { ...at, item: call });
    this.#index += 1;
  }

  async text(message: Message, delta: string): Promise<void> {
    await this.#open(message);
    await this.#emit('response.output_text.delta', { ...this.#part(message), delta, logprobs: [] });
  }

  /** The whole response. */
  async finish(response: OpenAiResponse): Promise<void> {
    const message = response.output.find((item): item is Message => item.type === 'message');
    if (message !== undefined) await this.#finishMessage(message);
    await this.#emit(`response.${response.status}`, { response });
  }

  /** The last event of a stream that fails. */
  describe(error: unknown): ServerEvent {
    const known = error instanceof AppError ? error : undefined;
    const { code, message } = known ?? { code: 'server_error', message: 'The server failed to process the request.' };
    // What the reader may no longer see is not shown again.
    if (this.#begun === undefined || code === 'forbidden') return this.#next('error', { code, message, param: null });
    const shown = known?.status === 429 ? 'rate_limit_exceeded' : 'server_error';
    const response = { ...this.#begun, status: 'failed' as const, error: { code: shown, message } };
    return this.#next('response.failed', { response });
  }

  async #finishMessage(message: Message): Promise<void> {
    await this.#open(message);
    const [part] = message.content;
    const at = this.#part(message);
    for (const [annotation_index, annotation] of (part?.annotations ?? []).entries())
      await this.#emit('response.output_text.annotation.added', { ...at, annotation_index, annotation });
    await this.#emit('response.output_text.done', { ...at, text: part?.text ?? '', logprobs: [] });
    await this.#emit('response.content_part.done', { ...at, part });
    await this.#emit('response.output_item.done', { output_index: this.#index, item: message });
  }

  #part({ id }: Message) {
    return { item_id: id, output_index: this.#index, content_index: 0 };
  }

  async #open(message: Message): Promise<void> {
    if (this.#message !== undefined) return;
    this.#message = message;
    const item: Message = { ...message, status: 'in_progress', content: [] };
    await this.#emit('response.output_item.added', { output_index: this.#index, item });
    const part = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    await this.#emit('response.content_part.added', { ...this.#part(message), part });
  }

  #emit(type: string, members: object): Promise<void> {
    return this.#send(this.#next(type, members));
  }

  #next(type: string, members: object): ServerEvent {
    const data = { type, sequence_number: this.#sequence, ...members };
    this.#sequence += 1;
    return { event: type, data };
  }
}
