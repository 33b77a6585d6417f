/**
 * Direct dependencies that are behind by a major version: the latest one when this was last looked at, and why it is not
 * used. `npm run prove -- --only supply-chain` compares with the registry.
 */
export const behind: Record<string, { latest: number; reason: string }> = {
  '@types/node': { latest: 26, reason: 'It describes the version of Node that runs, which is 24.' },
};
