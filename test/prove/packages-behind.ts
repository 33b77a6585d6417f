/**
 * Direct dependencies that are behind by a major version: the latest one when this was last looked at, and why it is not
 * used. `npm run prove -- --only supply-chain` compares with the registry.
 */
export const behind: Record<string, { latest: number; reason: string }> = {
  '@types/node': { latest: 26, reason: 'It describes the version of Node that runs, which is 24.' },
  openai: {
    latest: 7,
    reason: 'The tests of /v1 call it as programs do; those that use version 6 must keep working.',
  },
  vite: {
    latest: 8,
    reason: 'It builds with a native bundler for each platform; the override of rollup by WebAssembly belongs to 7.',
  },
};
