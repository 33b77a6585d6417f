import { Json, typeOf } from './values.ts';

/** A result row, with one member for each column, in camelCase. */
// biome-ignore lint/suspicious/noExplicitAny: what a statement returns is known only where it is written.
export type Row = Record<string, any>;
/** The rows of a statement, and how many rows it returned or changed. */
export type Result<Rows extends readonly unknown[]> = Rows & { readonly count: number };

/** The first row: undefined if there is none, unless the type says that there always is one. */
type First<Rows extends readonly unknown[]> = Rows extends readonly [infer Only] ? Only : Rows[number] | undefined;

/** A statement as PostgreSQL receives it. */
export type Compiled = {
  text: string;
  values: readonly unknown[];
  types: readonly number[];
  /** The template itself, which identifies one place in the code. */
  strings: TemplateStringsArray;
  /** Whether the statement is not worth preparing or must not be prepared. */
  once?: boolean;
  /** Called when the statement has been sent, before anything else can be. */
  onSent?: () => void;
  /** Takes the messages of a COPY that sends rows. */
  onCopied?: (message: Buffer) => void;
};
type Runner = (compiled: Compiled) => Promise<Result<Row[]>>;

/** SQL with its values. Nested in another statement, it is a fragment. When awaited, it runs, once. */
export class Statement<Rows extends readonly unknown[] = Row[]> implements Promise<Result<Rows>> {
  readonly [Symbol.toStringTag] = 'Statement';
  readonly strings: TemplateStringsArray;
  readonly args: readonly unknown[];
  readonly #run: Runner;
  #running: Promise<Result<Rows>> | undefined;

  constructor(run: Runner, strings: TemplateStringsArray, args: readonly unknown[]) {
    this.#run = run;
    this.strings = strings;
    this.args = args;
  }

  // biome-ignore lint/suspicious/noThenProperty: a statement is a promise that starts when it is awaited.
  then<Value = Result<Rows>, Failure = never>(
    onValue?: ((rows: Result<Rows>) => Value | PromiseLike<Value>) | null,
    onFailure?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    this.#running ??= this.#start();
    return this.#running.then(onValue, onFailure);
  }

  catch<Failure = never>(
    onFailure?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result<Rows> | Failure> {
    return this.then(undefined, onFailure);
  }

  finally(onEnd?: (() => void) | null): Promise<Result<Rows>> {
    return this.then().finally(onEnd);
  }

  /** Runs it, and returns whether it returned or changed a row. */
  async any(): Promise<boolean> {
    return (await this).count > 0;
  }

  /** Runs it, and returns its first row. */
  async first(): Promise<First<Rows>> {
    return (await this)[0] as First<Rows>;
  }

  async #start(): Promise<Result<Rows>> {
    return (await this.#run(compile(this))) as unknown as Result<Rows>;
  }
}

/** A table or column name in snake_case. A dot separates the parts. */
export class Identifier {
  readonly text: string;

  constructor(name: string) {
    this.text = quoteName(name);
  }
}

/** Rows to insert or, after `set`, the columns of one row to update. */
class Values {
  readonly rows: readonly object[];
  readonly columns: readonly string[];

  constructor(rows: object | readonly object[], columns: readonly string[] | undefined) {
    this.rows = Array.isArray(rows) ? rows : [rows];
    this.columns = columns ?? Object.keys(this.rows[0] ?? {});
    if (this.rows.length === 0 || this.columns.length === 0) throw new Error('There is nothing to write.');
  }
}

/** Builds SQL for a pool, a connection or a transaction. */
export type Sql = {
  <Rows extends readonly unknown[] = Row[]>(
    strings: TemplateStringsArray,
    ...args: readonly unknown[]
  ): Statement<Rows>;
  /** The name of a table or column. */
  (name: string): Identifier;
  /** `insert into t ${db(rows)}` or `update t set ${db(row)}`, with all members or the named ones. */
  (rows: object | readonly object[], columns?: readonly string[]): Values;
  /** A value for a `json` or `jsonb` column. */
  json(value: unknown): Json;
};

export function createSql<More extends object>(run: Runner, more: More): Sql & More {
  const tag = (first: TemplateStringsArray | string | object, ...rest: unknown[]) => {
    if (Array.isArray(first) && 'raw' in first) {
      const strings = first as unknown as TemplateStringsArray;
      if (!origins.has(strings)) origins.set(strings, new Error().stack ?? '');
      return new Statement(run, strings, rest);
    }
    if (typeof first === 'string') return new Identifier(first);
    return new Values(first, rest[0] as readonly string[] | undefined);
  };
  return Object.assign(tag as unknown as Sql, { json: (value: unknown) => new Json(value) }, more);
}

/** Where each template is in our code, because a database error arrives without a useful stack. */
const origins = new WeakMap<TemplateStringsArray, string>();

/** Gives an error the stack of its statement. */
export function withOrigin(error: unknown, strings: TemplateStringsArray): unknown {
  const frames = origins.get(strings)?.split('\n').slice(2).join('\n');
  if (error instanceof Error && frames) error.stack = `${error.name}: ${error.message}\n${frames}`;
  return error;
}

/** The text of templates whose arguments are all values. Such a text never changes. */
const plainTexts = new WeakMap<TemplateStringsArray, string>();

export function compile(statement: Statement<readonly unknown[]>): Compiled {
  const { strings, args } = statement;
  const plain = !args.some(isPart);
  const known = plain ? plainTexts.get(strings) : undefined;
  if (known !== undefined) return { text: known, values: args, types: args.map(typeOf), strings };
  const building: Building = { text: '', values: [], types: [] };
  append(building, statement);
  if (building.values.length > parametersMax)
    throw new Error(`A statement takes at most ${parametersMax} values, not ${building.values.length}.`);
  if (plain) plainTexts.set(strings, building.text);
  return { ...building, strings };
}

type Building = { text: string; values: unknown[]; types: number[] };

/** The protocol counts parameters in 16 bits. */
const parametersMax = 65_535;

function append(building: Building, { strings, args }: Statement<readonly unknown[]>): void {
  building.text += strings[0];
  for (const [i, arg] of args.entries()) {
    appendArgument(building, arg);
    building.text += strings[i + 1];
  }
}

function appendArgument(building: Building, arg: unknown): void {
  if (arg instanceof Statement) append(building, arg);
  else if (arg instanceof Identifier) building.text += arg.text;
  else if (arg instanceof Values) appendRows(building, arg);
  else if (isStatements(arg)) for (const part of arg) append(building, part);
  else {
    building.values.push(arg);
    building.types.push(typeOf(arg));
    building.text += `$${building.values.length}`;
  }
}

function appendRows(building: Building, { rows, columns }: Values): void {
  const memberOf = (row: object, column: string) => (row as Record<string, unknown>)[column];
  if (/\bset\s*$/i.test(building.text)) {
    for (const [i, column] of columns.entries()) {
      building.text += `${i === 0 ? '' : ', '}${quoteName(column)} = `;
      appendArgument(building, memberOf(rows[0] ?? {}, column));
    }
    return;
  }
  building.text += `(${columns.map(quoteName).join(', ')}) values `;
  for (const [r, row] of rows.entries()) {
    building.text += r === 0 ? '(' : ', (';
    for (const [i, column] of columns.entries()) {
      if (i > 0) building.text += ', ';
      appendArgument(building, memberOf(row, column));
    }
    building.text += ')';
  }
}

function isPart(arg: unknown): boolean {
  return arg instanceof Statement || arg instanceof Identifier || arg instanceof Values || isStatements(arg);
}

function isStatements(arg: unknown): arg is Statement<readonly unknown[]>[] {
  return Array.isArray(arg) && arg[0] instanceof Statement;
}

function quoteName(name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `"${snake.replaceAll('"', '""').replaceAll('.', '"."')}"`;
}

/** Converts `created_at` to `createdAt`. */
export function toCamel(column: string): string {
  return column.replace(/(?<=.)_(.)/g, (_, letter: string) => letter.toUpperCase());
}
