type Schema = Record<string, unknown>;
type ObjectSchema = Schema & { properties?: Record<string, Schema>; required?: string[] };
type Media = { schema?: Schema };
type Operation = {
  operationId: string;
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
};
type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } };

/** The members of every page but `data`. */
const pageMembers = ['page', 'page_size', 'total_entries', 'total_pages', 'has_next', 'has_prev'];

/**
 * Gives every JSON body a named schema, by which generators name its type: `CreateUserRequest`, `GetUsageResponse`,
 * and `UserPage` for a page of users, which extends the one schema `Page`. The path for developers shares the schemas
 * of its `/api/v1` twin.
 */
export function nameBodies({ paths, components: { schemas } }: Document): void {
  const name = (wanted: string, schema: Schema): Schema => {
    const taken = schemas[wanted];
    if (taken !== undefined && JSON.stringify(taken) !== JSON.stringify(schema))
      throw new Error(`Two schemas of openapi.json would be called ${wanted}.`);
    schemas[wanted] = schema;
    return { $ref: `#/components/schemas/${wanted}` };
  };
  for (const operations of Object.values(paths))
    for (const { operationId, requestBody, responses } of Object.values(operations)) {
      const operation = capitalised(twinOf(operationId));
      const request = requestBody?.content['application/json'];
      if (isAnonymous(request?.schema)) request.schema = name(`${operation}Request`, request.schema);
      for (const [status, { content }] of Object.entries(responses)) {
        const response = content?.['application/json'];
        if (!status.startsWith('2') || !isAnonymous(response?.schema)) continue;
        const item = pageItem(response.schema);
        if (item === undefined) response.schema = name(`${operation}Response`, response.schema);
        else {
          schemas.Page ??= pageSchema(response.schema);
          response.schema = name(pageName(item, operation, schemas), extendedPage(response.schema));
        }
      }
    }
}

/** The operation of which a developer operation is the twin; any other id as it is. */
export function twinOf(operationId: string): string {
  return operationId.replace(/^developer([A-Z])/, (_, letter: string) => letter.toLowerCase());
}

function isAnonymous(schema: Schema | undefined): schema is Schema {
  return schema !== undefined && schema.$ref === undefined && schema.type !== 'null';
}

/** The schema of the items of a page; undefined for any other body, such as one in which members may be missing. */
function pageItem({ properties = {}, required = [] }: ObjectSchema): Schema | undefined {
  if (!pageMembers.every((member) => required.includes(member))) return undefined;
  return (properties.data as { items?: Schema }).items;
}

function pageName({ $ref }: Schema, operation: string, schemas: Record<string, Schema>): string {
  const item = typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined;
  // A list whose items another kind of page already holds, such as one by cursor, has the name of its operation.
  const wanted = `${item}Page`;
  return item === undefined || (wanted in schemas && !('allOf' in (schemas[wanted] ?? {})))
    ? `${operation}Page`
    : wanted;
}

function pageSchema({ properties }: Schema): Schema {
  const members = properties as Record<string, Schema>;
  return {
    type: 'object',
    required: pageMembers,
    properties: Object.fromEntries(pageMembers.map((member) => [member, members[member]])),
    description: 'What every page of a list has in addition to its entries in `data`.',
  };
}

function extendedPage({ properties, required }: Schema): Schema {
  const own = Object.entries(properties as Record<string, Schema>).filter(([member]) => !pageMembers.includes(member));
  return {
    allOf: [
      { $ref: '#/components/schemas/Page' },
      {
        type: 'object',
        required: (required as string[]).filter((member) => !pageMembers.includes(member)),
        properties: Object.fromEntries(own),
      },
    ],
    description: 'One page of a list.',
  };
}

function capitalised(id: string): string {
  return id.charAt(0).toUpperCase() + id.slice(1);
}
