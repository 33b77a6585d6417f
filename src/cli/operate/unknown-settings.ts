import { settingNames, unknownSettings } from '../../config/config.ts';
import { findNearest } from '../../lib/nearest.ts';

/**
 * A warning for each variable that looks like a setting but is none. They do not end the start: Kubernetes sets such
 * variables for a service named quarry, and another release may have settings that this one has not.
 */
export function warnOfUnknownSettings(env?: Record<string, string | undefined>) {
  return unknownSettings(env).map((name) => {
    // Some settings have no prefix, such as PORT.
    const bare = name.replace(/^QUARRY_/, '');
    const nearest = settingNames.includes(bare) ? bare : findNearest(name, settingNames);
    const hint = nearest === undefined ? '' : `. Did you mean ${nearest}?`;
    return { name, warning: `This variable looks like a setting, but no such setting exists${hint}` };
  });
}
