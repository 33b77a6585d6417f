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

  /** Reads the file again. Without a file, it adds nothing. If `check` throws, the variables stay as they were. */
  load(check: () => void = () => {}): void {
    const before = this.#added.map((name): [string, string] => [name, process.env[name] ?? '']);
    const text = existsSync(this.#path) ? readFileSync(this.#path, 'utf8') : '';
    this.#replace(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']));
    try {
      check();
    } catch (error) {
      this.#replace(before);
      throw error;
    }
  }

  #replace(variables: [name: string, value: string][]): void {
    for (const name of this.#added) delete process.env[name];
    const added = variables.filter(([name]) => process.env[name] === undefined);
    for (const [name, value] of added) process.env[name] = value;
    this.#added = added.map(([name]) => name);
  }
}
