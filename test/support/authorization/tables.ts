import { readMatrix } from './matrix.ts';

/*
 * Who may do what to whose things, one table for each kind of thing and of operation; the authorisation matrix says
 * which table a route goes by. `ok` is the route's own success, a number the status of a refusal; a row is whose thing
 * the request names. test/support/authorization/tenants.ts says who the callers are.
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

/** What end users do not manage at all: 403 whatever they name. */
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

/** A thing of one app as a whole; the row says which app or sandbox the request comes to. */
export const everybody = readMatrix(`
              users key  sandboxKey otherKey
  mine        ok    ok   ok         ok
`);
export const keysOnly = readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   ok         ok
`);

/** Creating for an owner that the body names: what one cannot see is 422 on its member, what one only sees 403. */
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
/** A file or job of one's own may be filed under one's org, whatever the role. */
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
  /** Users make tokens for nobody but themselves, whomever they name. */
  mintTokens: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    403   403    403    403      403      403      403       ok   404        404
  other-org   403   403   403    403    403      ok       403      403       ok   404        404
  other-app   403   403   403    403    403      403      ok       403       404  404        ok
  sandbox     403   403   403    403    403      403      403      ok        404  ok         404
  `),
  /** Users end nobody's sessions but their own; the row is another user. */
  endSessions: readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   404        404
  other-app   403   404  404        ok
  sandbox     403   404  ok         404
  `),
  /** Tokens are a matter of the user alone. */
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

/** Sandboxes are managed from production alone. */
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

/** A source that one sees; the row is whose file is extracted. */
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

/** Paths are per owner: without `agent` or `org` in the query it is the caller's own that are meant. */
export const config = {
  mine: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  mine        ok    404   404    404    404      404      404      404       404  404        404
  `),
  named: readMatrix(`
              owner admin member viewer teammate outsider stranger sandboxed key  sandboxKey otherKey
  org         ok    ok    ok     ok     422      422      422      422       ok   422        422
  agent       ok    422   422    422    422      422      422      422       ok   422        422
  other-org   422   422   422    422    422      ok       422      422       ok   422        422
  `),
};

/** Nobody but the user and keys sees entries: end users always mean their own, keys name the user. */
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
