import { readMatrix } from './matrix.ts';

/*
 * Who may do what to which resources: one table for each kind of resource and operation. The authorization matrix
 * says which table applies to a route. `ok` is the route's own success status, a number the status of an error. A row
 * is the ownership of the resource that the request names. test/support/authorization/tenants.ts defines the callers.
 */

/** Fixtures with owner columns. */
export const readOwned = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  org         ok    ok    ok     ok     404      404      404      404       ok   404        404
  team        ok    404   404    404    ok       404      404      404       ok   404        404
  agent       ok    404   404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
`);
export const updateOwned = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  org         ok    ok    ok     403    404      404      404      404       ok   404        404
  team        ok    404   404    404    ok       404      404      404       ok   404        404
  agent       ok    404   404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
`);
export const deleteOwned = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  org         403   ok    403    403    404      404      404      404       ok   404        404
  team        ok    404   404    404    403      404      404      404       ok   404        404
  agent       ok    404   404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
`);

/** End users do not manage these at all: always 403. */
export const managed = readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   404        404
  org         403   ok   404        404
  team        403   ok   404        404
  agent       403   ok   404        404
  other-org   403   ok   404        404
  other-app   403   404  404        ok
  sandbox     403   404  ok         404
`);

/** Approvals that ask the owner: the user, the team, or admins and members of the organisation. */
export const asked = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  org         ok    ok    ok     404    404      404      404      404       ok   404        404
  team        ok    404   404    404    ok       404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
`);

/** A resource that belongs to a whole app. The row is the app or sandbox that receives the request. */
export const everybody = readMatrix(`
              users key  sandboxKey otherKey
  mine        ok    ok   ok         ok
`);
/** What needs a language model, on a server without one. */
export const withoutModel = readMatrix(`
              users key  sandboxKey otherKey
  mine        501   501  501        501
`);
export const keysOnly = readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   ok         ok
`);

/**
 * Creating for an owner named in the body: an owner that the caller cannot see is 422 on the member, one that they
 * can only see is 403.
 */
export const createOwned = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    403   403    403    403      422      422      422       ok   422        422
  team        ok    403   422    422    ok       422      422      422       ok   422        422
  other-app   422   422   422    422    422      422      ok       422       422  422        ok
  sandbox     422   422   422    422    422      422      422      ok        422  ok         422
`);
export const createOfAgent = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  agent       ok    422   422    422    422      422      422      422       ok   422        422
`);
export const createOfOrg = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  org         ok    ok    ok     403    422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
`);
/** Users may assign their own file or job to their org, whatever their role. */
export const fileUnderOrg = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  org         ok    ok    ok     ok     422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
`);

export const users = {
  read: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    ok    ok     ok     ok       404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
  /** Users create tokens only for themselves, whichever user they name. */
  mintTokens: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    403   403    403    403      403      403      403       ok   404        404
  other-org   403   403   403    403    403      ok       403      403       ok   404        404
  other-app   403   403   403    403    403      403      ok       403       404  404        ok
  sandbox     403   403   403    403    403      403      403      ok        404  ok         404
  `),
  /** Users end only their own sessions. The row is the user whose sessions they try to end. */
  endSessions: readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   404        404
  other-app   403   404  404        ok
  sandbox     403   404  ok         404
  `),
  /** Tokens belong only to their user. */
  tokens: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
};

export const teams = {
  create: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    ok    ok     403    ok       ok       ok       ok        ok   ok         ok
  org         ok    ok    ok     403    422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
  `),
  read: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  team        ok    ok    404    404    ok       404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      404      404       404  404        ok
  sandbox     404   404   404    404    404      404      404      404       404  ok         404
  `),
  manage: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  team        ok    ok    404    404    403      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      404      404       404  404        ok
  sandbox     404   404   404    404    404      404      404      404       404  ok         404
  `),
};

export const orgs = {
  read: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  org         ok    ok    ok     ok     404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      404      404       404  404        ok
  sandbox     404   404   404    404    404      404      404      404       404  ok         404
  `),
};

/** Sandboxes are managed only from production. */
export const sandboxes = {
  collection: readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   403        ok
  `),
  one: readMatrix(`
              users key  sandboxKey otherKey
  sandbox     403   ok   403        404
  `),
};
export const apiKeys = readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   404        404
  sandbox     403   ok   ok         404
  other-app   403   404  404        ok
`);

/** A visible source. The row is the ownership of the extracted file. */
export const extract = readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    422   422    422    422      422      422      422       ok   422        422
  org         ok    ok    ok     ok     422      422      422      422       ok   422        422
  team        ok    422   422    422    ok       422      422      422       ok   422        422
  agent       ok    422   422    422    422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
  other-app   422   422   422    422    422      422      ok       422       422  422        ok
  sandbox     422   422   422    422    422      422      422      ok        422  ok         422
`);

/** Paths belong to an owner: without `agent` or `org` in the query, to the caller. */
export const config = {
  mine: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       404  404        404
  `),
  /** The list of an owner whom the caller cannot see is empty: test/api/http/list-filters.test.ts. */
  listed: readMatrix(`
              users key  sandboxKey otherKey
  org         ok    ok   ok         ok
  agent       ok    ok   ok         ok
  other-org   ok    ok   ok         ok
  `),
  named: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  org         ok    ok    ok     ok     422      422      422      422       ok   422        422
  agent       ok    422   422    422    422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
  `),
  written: readMatrix(`
              users key  sandboxKey otherKey
  org         403   ok   422        422
  agent       403   ok   422        422
  other-org   403   ok   422        422
  `),
};

/** The text of models in a run that acted as someone other than its reader: only for keys. */
export const runOutput = readMatrix(`
              users key  sandboxKey otherKey
  mine        404   ok   404        404
  org         404   ok   404        404
  team        404   ok   404        404
  other-org   404   ok   404        404
  other-app   404   404  404        ok
  sandbox     404   404  ok         404
`);

/** Only the user and keys see entries: end users always act on their own entries, keys name the user. */
export const kv = {
  entry: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
  write: readMatrix(`
              users key  sandboxKey otherKey
  mine        ok    ok   404        404
  other-app   ok    404  404        ok
  sandbox     ok    404  ok         404
  `),
};

/** An org admin also sees and may delete the sources of the org's users, teams and agents. */
export const sources = {
  read: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    ok    404    404    404      404      404      404       ok   404        404
  org         ok    ok    ok     ok     404      404      404      404       ok   404        404
  team        ok    ok    404    404    ok       404      404      404       ok   404        404
  agent       ok    ok    404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
  update: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    403   404    404    404      404      404      404       ok   404        404
  org         ok    ok    ok     403    404      404      404      404       ok   404        404
  team        ok    403   404    404    ok       404      404      404       ok   404        404
  agent       ok    403   404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
  delete: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    ok    404    404    404      404      404      404       ok   404        404
  org         403   ok    403    403    404      404      404      404       ok   404        404
  team        ok    ok    404    404    403      404      404      404       ok   404        404
  agent       ok    ok    404    404    404      404      404      404       ok   404        404
  other-org   404   404   404    404    404      ok       404      404       ok   404        404
  other-app   404   404   404    404    404      404      ok       404       404  404        ok
  sandbox     404   404   404    404    404      404      404      ok        404  ok         404
  `),
};
