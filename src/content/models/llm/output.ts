import { storableText } from '../../../lib/storable-text.ts';
import type { Completed, Completion } from './completion.ts';
import { charactersWithin, cutUsage, type TokenUsage } from './messages.ts';
import { type ToolCallPart, ToolCalls } from './tools.ts';

/** What one event of a response adds. */
export type OutputPart = {
  text: string;
  toolCalls?: readonly ToolCallPart[];
  finishReason: string | undefined;
  usage: TokenUsage | undefined;
};

/** Servers choose their own reasons. */
const finishReasonCharactersMax = 100;

/** What the model has written so far. */
export class Output {
  readonly #request: Completion;
  readonly #charactersMax: number;
  /** The first half of a character whose second half is in the next event. */
  #half = '';
  readonly #calls = new ToolCalls();
  #hasTooManyCalls = false;
  text = '';
  finishReason: string | undefined;
  usage: TokenUsage | undefined;

  constructor(request: Completion) {
    this.#request = request;
    this.#charactersMax = charactersWithin(request.tokens);
  }

  /** Whether the text and the calls are longer than the tokens that the request allows. */
  get isFull(): boolean {
    return this.#hasTooManyCalls || this.text.length + this.#calls.characters >= this.#charactersMax;
  }

  get toolCalls() {
    return this.#calls.list();
  }

  add({ text, toolCalls = [], usage, finishReason }: OutputPart): void {
    for (const part of toolCalls) this.#addCall(part);
    this.usage = usage ?? this.usage;
    this.finishReason = storableText(finishReason?.slice(0, finishReasonCharactersMax)) ?? this.finishReason;
    const joined = this.#half + text;
    this.#half = /[\ud800-\udbff]$/.test(joined) ? joined.slice(-1) : '';
    this.#write(joined.slice(0, joined.length - this.#half.length));
  }

  /** Writes what remains at the end of the stream. */
  end(): void {
    this.#write(this.#half);
    this.#half = '';
  }

  #addCall(part: ToolCallPart): void {
    this.#request.onToolCall?.();
    if (!this.#calls.add(part)) this.#hasTooManyCalls = true;
  }

  /** The text up to the limit, like that of a model that stops there itself. A call may be incomplete: none is made. */
  cut(): Completed {
    const usage = cutUsage(this.#request.messages, this.#request.tokens);
    return { text: this.text, toolCalls: [], finishReason: 'length', usage };
  }

  #write(text: string): void {
    const left = this.#charactersMax - this.text.length;
    const fitting = text.length > left ? text.slice(0, left).replace(/[\ud800-\udbff]$/, '') : text;
    const written = storableText(fitting);
    if (written === '') return;
    this.text += written;
    this.#request.onText?.(written);
  }
}
