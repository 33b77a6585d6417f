import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

/**
 * The variables of a `.env` file, as a part of the environment of this process. Variables that the process was started
 * with take precedence. Only `quarry dev` reads such a file.
 */
export class EnvFile {
  readonly #path: string;
  #added: string[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads the file again. Without a file, it adds nothing. */
  load(): void {
    for (const name of this.#added) delete process.env[name];
    const text = existsSync(this.#path) ? readFileSync(this.#path, 'utf8') : '';
    const read = Object.entries(parseEnv(text)).filter(([name]) => process.env[name] === undefined);
    for (const [name, value] of read) process.env[name] = value;
    this.#added = read.map(([name]) => name);
  }
}
