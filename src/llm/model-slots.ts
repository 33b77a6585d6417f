import { Slots } from '../fairness/slots.ts';
import { AppError } from '../lib/errors.ts';
import type { Chosen } from './registry.ts';

/**
 * The calls of models that a process makes concurrently. Each model has its own slots, which apps share, so a model that
 * does not respond delays no call of another one.
 */
export class ModelSlots {
  readonly #concurrency: number;
  /** The slots of models that are in use, and by how many calls. */
  readonly #models = new Map<string, { slots: Slots; calls: number }>();

  /** @param concurrency the calls of one app to one model */
  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** Makes a call in a slot of the first model of the choice. Throws 503 if too many calls of the app wait for it. */
  async run<T>(lane: string, { models: [first] }: Chosen, call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const id = first?.id ?? `operator/${first?.name}`;
    const model = this.#models.get(id) ?? { slots: this.#open(), calls: 0 };
    this.#models.set(id, model);
    model.calls += 1;
    try {
      return await model.slots.run(lane, call, signal);
    } finally {
      model.calls -= 1;
      if (model.calls === 0) this.#models.delete(id);
    }
  }

  #open(): Slots {
    const tooMany = () => new AppError('unavailable', 'Too many requests of this app wait for the model.');
    return new Slots({ slots: 2 * this.#concurrency, tooMany });
  }
}
