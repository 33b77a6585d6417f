import { describeConfig, readConfig } from '../../config/config.ts';
import { warnOfUnknownSettings } from './unknown-settings.ts';

/** `quarry config`: prints the effective settings. Warns of variables that look like settings and are none. */
export async function run(options: { json?: string | boolean | undefined }): Promise<number> {
  const settings = describeConfig(readConfig());
  const lines = options.json
    ? [JSON.stringify(settings, null, 2)]
    : settings.map(
        ({ variable, value, source }) =>
          `${variable.padEnd(26)} ${value === '' ? '(unset)' : value}${source === 'environment' ? '' : '  (default)'}`,
      );
  process.stdout.write(`${lines.join('\n')}\n`);
  for (const { name, warning } of warnOfUnknownSettings()) process.stderr.write(`${name}: ${warning}\n`);
  return 0;
}
