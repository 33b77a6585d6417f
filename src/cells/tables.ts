/**
 * Where each table without `app_id` lives when the installation has cells. The other tables belong to an app, and
 * their rows are in the database of the app's cell; only `cell_apps`, which names that cell, is in the directory. test/rules/cells.test.ts compares this with migrations/schema.txt.
 *
 * - `directory`: only in the directory's database.
 * - `cell`: every cell has rows of its own, which say nothing about other cells.
 * - `both`: the directory has the rows; a cell has copies of those that its apps refer to.
 * - `each`: every database has rows about itself.
 */
export const tablePlaces: Record<string, 'directory' | 'cell' | 'both' | 'each'> = {
  // The name and developer of an app are also in cell_apps.
  apps: 'cell',
  cell_apps: 'directory',
  cell_identity: 'each',
  cells: 'directory',
  console_developer_sessions: 'directory',
  console_sign_in_links: 'directory',
  // Politeness to a host counts the requests of all cells.
  crawl_host_shares: 'directory',
  developer_tokens: 'directory',
  // Apps refer to their developer.
  developers: 'both',
  ledger_keys: 'cell',
  // The same settings fill it in every cell.
  quota_defaults: 'cell',
  rate_budgets: 'cell',
  // Failed sign-ins from one address count in all cells.
  sign_in_failures: 'directory',
};
