import { approve } from './approve.ts';
import { callOperation } from './call-operation.ts';
import { complete } from './complete.ts';
import { conditional } from './conditional.ts';
import { emitEvent } from './emit-event.ts';
import { extract } from './extract.ts';
import { fail } from './fail.ts';
import { fileWrite } from './file-write.ts';
import { forEach } from './for-each.ts';
import { generate } from './generate.ts';
import { httpRequest } from './http-request.ts';
import { ingest } from './ingest.ts';
import type { NodeKind } from './kind.ts';
import { kvDelete } from './kv-delete.ts';
import { kvGet } from './kv-get.ts';
import { kvSet } from './kv-set.ts';
import { parallel } from './parallel.ts';
import { runAutomation } from './run-automation.ts';
import { search } from './search.ts';
import { transform } from './transform.ts';
import { trigger } from './trigger.ts';
import { wait } from './wait.ts';
import { waitForSignal } from './wait-for-signal.ts';

/** Every node kind by its name. A new kind is a new file and a line here. */
export const nodeKinds: ReadonlyMap<string, NodeKind> = new Map(
  [
    trigger,
    transform,
    conditional,
    httpRequest,
    generate,
    wait,
    waitForSignal,
    approve,
    forEach,
    parallel,
    runAutomation,
    extract,
    ingest,
    search,
    kvGet,
    kvSet,
    kvDelete,
    fileWrite,
    emitEvent,
    complete,
    fail,
  ].map((kind) => [kind.kind, kind]),
);

/** A kind by its name: of graphs, or of the nodes that calls of tools run as. */
export function findKind(name: string): NodeKind | undefined {
  return nodeKinds.get(name) ?? (name === callOperation.kind ? callOperation : undefined);
}
