import type { Db } from '../../db/database.ts';
import type { WaitOutside } from '../../jobs/workers.ts';
import type { GraphNode } from '../definitions/graph.ts';
import type { NodeContext, NodeServices } from '../nodes/kind.ts';
import { type Place, resolveMembers } from '../nodes/members.ts';
import type { AdvanceDeps } from './advance-deps.ts';
import type { Scope } from './expressions.ts';
import type { RunJournal } from './run-journal.ts';
import type { OpenSecrets } from './run-secrets.ts';

type Evaluate = (expression: string, scope: Scope) => Promise<unknown>;

/** What the nodes of one run are given: their members with the templates resolved, and the context of their work. */
export class NodeInput {
  readonly #deps: AdvanceDeps;
  readonly #journal: RunJournal;
  readonly #secrets: OpenSecrets;
  readonly #waitOutside: WaitOutside | undefined;
  #services: Promise<NodeServices<Db>> | undefined;

  constructor(deps: AdvanceDeps, journal: RunJournal, secrets: OpenSecrets, waitOutside: WaitOutside | undefined) {
    this.#deps = deps;
    this.#journal = journal;
    this.#secrets = secrets;
    this.#waitOutside = waitOutside;
  }

  /** Whether the next expression waits behind others of the same automation. */
  get mustWait(): boolean {
    const { appId, automationId } = this.#journal.row;
    return this.#deps.expressions.mustWait(appId, automationId);
  }

  /** Resolves the templates in a node's members. Returns them with the copy that the journal may show. */
  resolve(
    node: GraphNode,
    place: Place,
    evaluate: Evaluate = (expression, scope) => this.#evaluate(expression, scope),
  ) {
    return resolveMembers(node, place, {
      journal: this.#journal,
      evaluate,
      secrets: this.#secrets.values,
      secretValues: this.#secrets.finder,
    });
  }

  /** Evaluates an expression. Behind others of the same automation, it waits without a job slot. */
  #evaluate(expression: string, scope: Scope): Promise<unknown> {
    const { appId, automationId } = this.#journal.row;
    const evaluate = () => this.#deps.expressions.evaluate(appId, expression, scope, automationId);
    return this.#waitOutside !== undefined && this.mustWait ? this.#waitOutside(evaluate) : evaluate();
  }

  /** The context of one attempt of a node. */
  async context(
    of: { commandId: string; attempt: number; node: GraphNode },
    signal = new AbortController().signal,
  ): Promise<NodeContext<Db>> {
    const { finder } = this.#secrets;
    this.#services ??= this.#deps.servicesFor(this.#journal.row);
    return {
      input: this.#journal.state.input,
      commandId: of.commandId,
      childKey: of.attempt === 1 ? of.commandId : `${of.commandId}/${of.attempt}`,
      now: this.#deps.clock.now(),
      signal,
      services: await this.#services,
      generation: {
        ...{ nodeId: of.node.id, commandId: of.commandId, attempt: of.attempt, signal },
        calls: this.#journal.state.active.get(of.commandId)?.generation,
        redactBeginning: (text) => finder.redactBeginning(text),
        redact: <T>(value: T) => finder.redact(value).value as T,
      },
    };
  }
}
