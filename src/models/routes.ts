import { operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentAlias, presentCall, presentModel, presentTrial } from './present.ts';
import {
  aliasCreateSchema,
  aliasSchema,
  aliasUpdateSchema,
  availableModelSchema,
  callFilter,
  modelCallSchema,
  modelCreateSchema,
  modelSchema,
  modelTestSchema,
  modelUpdateSchema,
} from './schema.ts';
import type { ModelService } from './service.ts';

const tag = 'Models';

/** Language models of an app, aliases, and the records of calls. */
export function registerModelRoutes(api: Api, { models }: { models: ModelService }): void {
  registerResource(api, {
    path: '/models',
    param: 'model',
    ids: ['Model', 'Models'],
    words: ['a model', 'models'],
    tag,
    schema: modelSchema,
    present: presentModel,
    about: {
      create:
        'The key is stored encrypted and never returned. 422 for a URL that is not on the public internet, for a name that is taken, and for more than 100 models.',
      list: 'The app’s own models, newest first. `GET /available_models` lists those of the operator too.',
      get: 'Without its key.',
      update: 'Omitted members keep their values. A URL of another host removes the key.',
      remove: 'Requests that name it are then 422, and aliases skip it. Its calls stay listed.',
    },
    create: { callers: operators, body: modelCreateSchema, idempotency: 'credential', run: models.create },
    list: { callers: operators, run: models.list },
    get: { callers: operators, run: models.get },
    update: { callers: operators, body: modelUpdateSchema, run: models.update },
    remove: { callers: operators, run: models.remove },
  });
  registerAliases(api, models);
  registerCalls(api, models);
  api.provisioning(operators, {
    method: 'POST',
    path: '/models/:model/test',
    operationId: 'testModel',
    changesRights: false,
    tag,
    summary: 'Try a model',
    description:
      'Makes one small call and says what happened, whether it succeeded or not. The call has a record and counts towards budgets: 429 if one of them refuses it.',
    responses: { 200: ref(modelTestSchema) },
    handler: async ({ caller, params }) => presentTrial(await models.test(caller, (params as { model: string }).model)),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/available_models',
    operationId: 'listAvailableModels',
    tag,
    summary: 'List the models that requests may name',
    description: 'The models and aliases of the app and of the operator, by name.',
    responses: { 200: Type.Object({ data: Type.Array(ref(availableModelSchema)) }) },
    handler: async ({ caller }) => ({ data: await models.listAvailable(caller) }),
  });
}

function registerAliases(api: Api, models: ModelService): void {
  registerResource(api, {
    path: '/model_aliases',
    param: 'model_alias',
    ids: ['ModelAlias', 'ModelAliases'],
    words: ['an alias of models', 'aliases of models'],
    tag,
    schema: aliasSchema,
    present: presentAlias,
    about: {
      create:
        'A request that names the alias uses its first model. The next one is tried if a model is busy, fails, is too slow or has too small a context, and has written nothing yet.',
      list: 'The app’s own aliases, newest first.',
      get: 'With the names of its models.',
      update: 'Omitted members keep their values.',
      remove: 'Requests that name it are then 422.',
    },
    create: { callers: operators, body: aliasCreateSchema, run: models.createAlias },
    list: { callers: operators, run: models.listAliases },
    get: { callers: operators, run: models.getAlias },
    update: { callers: operators, body: aliasUpdateSchema, run: models.updateAlias },
    remove: { callers: operators, run: models.removeAlias },
  });
}

function registerCalls(api: Api, models: ModelService): void {
  registerResource(api, {
    path: '/model_calls',
    param: 'model_call',
    ids: ['ModelCall', 'ModelCalls'],
    words: ['a call of a model', 'calls of models'],
    tag,
    schema: modelCallSchema,
    present: presentCall,
    about: {
      list: 'Newest first, without contents. Each try of an alias is a call of its own. Records are kept for 30 days unless the operator says otherwise.',
      get: 'With the messages and the text, if the operator keeps them.',
    },
    list: { callers: operators, query: callFilter, run: models.listCalls },
    get: { callers: operators, run: models.getCall },
  });
}
