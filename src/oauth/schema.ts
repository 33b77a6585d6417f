import { strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { keyScopes } from '../tenancy/key-scopes.ts';
import { pendingCharactersMax } from './pending.ts';

const text = (description: string) => Type.String({ description });
const texts = (description: string) => Type.Array(Type.String(), { description });
const optional = (description: string) => Type.Optional(Type.String({ description }));
const redirectHost = text('The host, and the port, to which the browser returns.');
const requestText = Type.String({
  minLength: 1,
  maxLength: pendingCharactersMax,
  description: 'The `request` in the address of the consent page. It is valid for 15 minutes.',
});

export const assistantSchema = Type.Object(
  {
    id: text('asg_…'),
    app: text('dap_…'),
    sandbox: optional('sbx_…'),
    user: text('The user for whom it acts, usr_….'),
    name: text('The name that it gave itself.'),
    url: optional('The address of its metadata document, or a page that it named.'),
    redirect_host: redirectHost,
    scopes: texts('What it may do, at the MCP endpoint alone.'),
    created_at: text('When the user connected it.'),
    last_used_at: text('When it last fetched a token. A token is valid for one hour.'),
    expires_at: text('When the connection ends unless it is used. Each use extends it by 30 days.'),
  },
  {
    $id: 'ConnectedAssistant',
    description: 'A program that a user allowed to use the MCP endpoint for them, by OAuth.',
  },
);

export const assistantRequestSchema = Type.Object(
  {
    name: text('The name that the program gave itself.'),
    url: optional('The address of its metadata document, or a page that it named.'),
    is_verified: Type.Boolean({ description: 'Whether `url` is its metadata document, which names `redirect_host`.' }),
    redirect_host: redirectHost,
    is_local: Type.Boolean({ description: 'Whether the browser returns to a program on the same machine.' }),
    scopes: texts('What it asks for.'),
  },
  { $id: 'AssistantRequest', description: 'What an assistant asks of the signed-in user.' },
);

export const assistantRequestQuery = Type.Object({ request: requestText });

export const assistantDecisionSchema = strict({
  request: requestText,
  decision: Type.Enum(['allow', 'refuse'], { description: 'What the user decided.' }),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...keyScopes]), {
      minItems: 1,
      maxItems: keyScopes.length,
      description: 'What the assistant may do: no more than it asks for. Default: everything that it asks for.',
    }),
  ),
});

export const assistantDecidedSchema = Type.Object(
  { redirect_url: text('Where to send the browser. It contains the code, or the refusal.') },
  { $id: 'AssistantDecision', description: 'Where the browser returns to the assistant.' },
);

export const serverMetadataSchema = Type.Object(
  {
    issuer: text('The issuer; also the `iss` of every authorization response (RFC 9207).'),
    authorization_endpoint: text('Where the browser goes.'),
    token_endpoint: text('Exchanges codes and refresh tokens.'),
    registration_endpoint: text('Registers a client (RFC 7591).'),
    revocation_endpoint: text('Ends a connection (RFC 7009).'),
    scopes_supported: texts('What a client may ask for.'),
    response_types_supported: texts('Only `code`.'),
    response_modes_supported: texts('Only `query`.'),
    grant_types_supported: texts('`authorization_code` and `refresh_token`.'),
    token_endpoint_auth_methods_supported: texts('Only `none`: clients have no secret.'),
    revocation_endpoint_auth_methods_supported: texts('Only `none`.'),
    code_challenge_methods_supported: texts('Only `S256`.'),
    authorization_response_iss_parameter_supported: Type.Boolean({ description: 'Always true.' }),
    client_id_metadata_document_supported: Type.Boolean({
      description: 'Always true: a client_id may be the URL of a metadata document.',
    }),
  },
  { $id: 'AuthorizationServerMetadata', description: 'How OAuth clients use the authorization server (RFC 8414).' },
);

const clientMembers = {
  client_name: optional('The name that users see, up to 100 characters.'),
  client_uri: optional('A page about the client.'),
  redirect_uris: texts('Where codes may go: https, or http on the user’s machine, where the port may differ.'),
  grant_types: Type.Optional(texts('`authorization_code`, and `refresh_token`.')),
  response_types: Type.Optional(texts('Only `code`.')),
  token_endpoint_auth_method: optional('Only `none`.'),
};

/** RFC 7591 has the server ignore members that it does not know. */
export const clientRegistrationSchema = Type.Object(clientMembers);

export const registeredClientSchema = Type.Object(
  {
    client_id: text('The id of the client. It holds the metadata, so nothing is stored.'),
    client_id_issued_at: Type.Integer({ description: 'Seconds since 1970.' }),
    ...clientMembers,
  },
  { $id: 'RegisteredClient', description: 'A client of the authorization server (RFC 7591).' },
);

/** The fields of the form, for the reference: the service reads and checks them. */
export const tokenFormSchema = Type.Object(
  {
    grant_type: Type.Enum(['authorization_code', 'refresh_token'], { description: 'What is exchanged.' }),
    client_id: text('The client that the code or the refresh token was issued to.'),
    code: Type.Optional(text('The code. Only with `authorization_code`.')),
    code_verifier: Type.Optional(text('The verifier of the code challenge. Only with `authorization_code`.')),
    redirect_uri: Type.Optional(text('The address that the code was sent to. Only with `authorization_code`.')),
    refresh_token: Type.Optional(text('The refresh token. Only with `refresh_token`.')),
    scope: Type.Optional(text('Fewer scopes than were granted, separated by spaces. Only with `refresh_token`.')),
    resource: Type.Optional(text('The MCP endpoint, as the metadata names it.')),
  },
  { $id: 'AssistantTokenForm', description: 'The form that exchanges a code or a refresh token.' },
);

export const revocationFormSchema = Type.Object(
  { token: text('An access token or a refresh token.'), client_id: text('The client that the token was issued to.') },
  { $id: 'AssistantRevocationForm', description: 'The form that ends the connection of an assistant.' },
);

export const mcpTokenSchema = Type.Object(
  {
    access_token: text('mat_…, for the MCP endpoint alone.'),
    token_type: Type.Literal('Bearer', { description: 'How to send it.' }),
    expires_in: Type.Integer({ description: 'The lifetime of the access token in seconds.' }),
    refresh_token: text('mrt_…, which works once.'),
    scope: text('What the token allows, separated by spaces.'),
  },
  { $id: 'AssistantToken', description: 'The tokens of a connected assistant (RFC 6749).' },
);

export const oauthErrorSchema = Type.Object(
  {
    error: text('The code of the error, as in RFC 6749, 7591 and 8707.'),
    error_description: text('The error in words.'),
  },
  { $id: 'OAuthError', description: 'Why the request was refused or failed, in the shape that OAuth clients expect.' },
);
