/* Loaded into the server of a soak. Collects garbage when the soak asks for it, so that samples show memory in use. */
import { collectGarbage } from '../support/garbage.ts';

process.on('SIGUSR2', () => collectGarbage());
