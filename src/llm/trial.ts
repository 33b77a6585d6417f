import { LlmError } from '../content/models/llm/messages.ts';
import { ModelFailure } from '../content/models/service.ts';
import { AppError } from '../lib/errors.ts';
import { holdTokens } from '../tenancy/quotas.ts';
import type { Complete } from './complete.ts';
import type { TokenBudget } from './generation.ts';
import type { CallOrigin } from './origin.ts';
import type { Registry } from './registry.ts';
import type { NamedModels } from './vectors.ts';

const problems = ['no_key', 'key_refused', 'not_found', 'unreachable', 'timeout', 'failed'] as const;
export const trialProblems: readonly (typeof problems)[number][] = problems;

/** What happened when a model was tried. */
export type Trial = {
  ok: boolean;
  problem?: (typeof problems)[number];
  message?: string;
  latencyMs: number;
  firstTokenMs?: number;
};

export type TryModel = (origin: CallOrigin, name: string) => Promise<Trial>;

type TrialDeps = {
  registry: Registry;
  complete: Complete;
  named: NamedModels;
};

const trialMsMax = 20_000;
const trialTokens = 16;

/** Tries a model with one small call, which has a record and counts towards budgets. Throws 429 if they refuse it. */
export function createTrial({ registry, complete, named }: TrialDeps): TryModel {
  async function call(origin: CallOrigin, name: string, signal: AbortSignal, onText: () => void): Promise<void> {
    const { models } = await registry.choose(origin, name, { kind: 'any' });
    switch (models[0]?.kind) {
      case 'embedding': {
        const embedder = await named.openEmbedder(origin, name, { origin });
        await embedder.embed(origin.appId, ['A short sentence.'], 'passage', signal);
        return;
      }
      case 'rerank':
        return named.tryReranker(origin, name, origin, signal);
      default: {
        const budget: TokenBudget = { reserve: (tx, tokens) => holdTokens(tx, origin, tokens) };
        const messages = [{ role: 'user' as const, content: 'Reply with the word: yes' }];
        const of = { lane: origin.appId, budget, origin, signal, onText };
        await complete({ alias: null, models }, messages, { messages, tokens: trialTokens }, of);
      }
    }
  }

  return async (origin, name) => {
    const signal = AbortSignal.timeout(trialMsMax);
    const began = performance.now();
    let firstTokenMs: number | undefined;
    const elapsed = () => Math.round(performance.now() - began);
    try {
      await call(origin, name, signal, () => {
        firstTokenMs ??= elapsed();
      });
      return { ok: true, latencyMs: elapsed(), ...(firstTokenMs === undefined ? {} : { firstTokenMs }) };
    } catch (error) {
      if (signal.aborted)
        return {
          ok: false,
          problem: 'timeout',
          message: `Nothing arrived within ${trialMsMax / 1_000} seconds.`,
          latencyMs: elapsed(),
        };
      const found = describe(error);
      if (found === undefined) throw error;
      return { ok: false, ...found, latencyMs: elapsed() };
    }
  };
}

/** What is wrong with a model; undefined for an error that says nothing about it. */
function describe(error: unknown): Required<Pick<Trial, 'problem' | 'message'>> | undefined {
  if (error instanceof AppError && error.cause !== undefined) return describe(error.cause);
  if (error instanceof LlmError) {
    const problem =
      error.code === 'llm_unreachable'
        ? 'unreachable'
        : error.code === 'llm_timeout'
          ? 'timeout'
          : problemOf(error.status);
    return { problem, message: error.message };
  }
  if (!(error instanceof ModelFailure)) return undefined;
  // A budget's refusal is not a failure of the model.
  if (error.cause instanceof AppError) throw error.cause;
  const isUnreachable = error.status === undefined && error.mayPass;
  return { problem: isUnreachable ? 'unreachable' : problemOf(error.status), message: error.message };
}

function problemOf(status: number | undefined): NonNullable<Trial['problem']> {
  if (status === 401 || status === 403) return 'key_refused';
  return status === 404 ? 'not_found' : 'failed';
}
