import { TextIndex } from './text-index.ts';

/**
 * Redacts secrets in the data that a run writes. They are found by value, in any string, key or number, plain or
 * encoded. The stored record names the secret at each position, so that the run's own engine can restore it when it
 * reads the journal.
 */

export const redactedText = '[redacted]';

/** The position of a secret in a redacted value. */
export type RedactedPlace = {
  /** The path to the string in the redacted value. */
  path: Path;
  /** The last step of the path is an object's key, and the key itself is redacted. */
  key?: true;
  /** The number of characters at the end of that key that only make it unique. */
  cut?: number;
  /** The offset of `[redacted]` in that string, in UTF-16 units; absent if the secret was a JSON number. */
  at?: number;
  secret: string;
  /** The secret's encoding; absent if it is plain. */
  form?: string;
};

type Form = { secret: string; form: string | undefined; text: string };
type Match = { start: number; form: Form };
type Found = { at: number | undefined; form: Form };
type Path = (string | number)[];
type Holder = Record<string | number, unknown>;

/** Shorter secrets are found only as a whole string, because within strings they would match everywhere. */
const insideCharactersMin = 4;
/** Encodings of shorter secrets are not searched for. */
const encodedBytesMin = 8;
/** This much of each secret is encoded in advance. The rest is encoded once a value contains such a beginning. */
const startCharacters = 24;

export class SecretValues {
  readonly #values: Readonly<Record<string, string>>;
  /** Names of secrets by the beginnings of their forms, and by the same beginnings in JSON. */
  readonly #starts = new Map<string, string[]>();
  readonly #startsJson = new TextIndex<string[]>();
  /** The forms of secrets whose beginnings have been found. */
  readonly #forms = new Map<string, Form[]>();
  readonly #inside = new TextIndex<Form>();
  /** Forms that are found only as whole strings. */
  readonly #whole = new Map<string, Form>();
  /** Plain values, which may also be JSON numbers. */
  readonly #plain = new Map<string, Form>();

  /** @param values by the secret's name. */
  constructor(values: Readonly<Record<string, string>>) {
    this.#values = values;
    for (const [secret, text] of Object.entries(values)) {
      const plain = this.#plain.get(text) ?? { secret, form: undefined, text };
      this.#plain.set(text, plain);
      if (text.length < insideCharactersMin) this.#whole.set(text, plain);
      else
        for (const start of startsOf(text)) {
          const secrets = this.#starts.get(start) ?? [];
          if (secrets.push(secret) > 1) continue;
          this.#starts.set(start, secrets);
          this.#startsJson.add({ text: jsonOf(start), of: secrets });
        }
    }
  }

  /** A copy of a JSON value without the secrets, and their positions; the value itself when it contains none. */
  redact(value: unknown): { value: unknown; places: RedactedPlace[] } {
    const json = this.#plain.size === 0 ? undefined : JSON.stringify(value);
    if (json === undefined || !this.#mayBeIn(json)) return { value, places: [] };
    const places: RedactedPlace[] = [];
    const note = (path: Path, found: Found[], key?: { key: true; cut?: number }) => {
      for (const { at, form } of found)
        places.push({
          path,
          ...key,
          ...(at === undefined ? {} : { at }),
          secret: form.secret,
          ...(form.form === undefined ? {} : { form: form.form }),
        });
    };
    const copy = copyJson(JSON.parse(json), {
      leaf: (leaf, path) => {
        const { value: out, found } = typeof leaf === 'number' ? this.#redactNumber(leaf) : this.#redactText(leaf);
        note(path, found);
        return out;
      },
      keys: (keys, path) => {
        const taken = new Set(keys);
        const tried = new Map<string, number>();
        return keys.map((key) => {
          const { value: out, found } = this.#redactText(key);
          if (found.length === 0) return key;
          const name = unusedName(out, taken, tried);
          taken.add(name);
          const more = name.length - out.length;
          note([...path, name], found, { key: true, ...(more === 0 ? {} : { cut: more }) });
          return name;
        });
      },
    });
    return { value: places.length === 0 ? value : copy, places };
  }

  /**
   * Redacts a text that is still growing. Returns its redacted beginning and the rest, which may end with the beginning
   * of a secret.
   */
  redactBeginning(text: string): { done: string; rest: string } {
    this.#mayBeIn(JSON.stringify(text));
    let cut = text.length;
    for (const start of this.#starts.keys()) cut = Math.min(cut, startOfUnfinished(text, start));
    for (const forms of this.#forms.values())
      for (const form of forms) cut = Math.min(cut, startOfUnfinished(text, form.text));
    for (const short of this.#whole.keys()) if (short.startsWith(text)) cut = 0;
    for (const { start, form } of this.#findIn(text)) if (start < cut) cut = Math.max(cut, start + form.text.length);
    return { done: this.#redactText(text.slice(0, cut)).value, rest: text.slice(cut) };
  }

  /** The values of these secrets, by name. */
  valuesOf(names: readonly string[]): Record<string, string> {
    return Object.fromEntries(names.map((name) => [name, this.#values[name] ?? redactedText]));
  }

  /** The names of the secrets in a JSON value. */
  namesIn(value: unknown): string[] {
    return [...new Set(this.redact(value).places.map((place) => place.secret))];
  }

  /**
   * Restores the secrets in a redacted value, in place. Secrets that no longer exist stay redacted; their names are
   * returned with the value.
   */
  restore(value: unknown, places: readonly RedactedPlace[]): { value: unknown; gone: string[] } {
    const root: Holder = { value };
    const gone = [...new Set(places.map((place) => place.secret))].filter((name) => this.#values[name] === undefined);
    const known = places.filter((place) => !gone.includes(place.secret));
    // From the end of each string to its beginning, so that earlier offsets stay valid; keys last, deepest first.
    const ordered = known.toSorted(
      (a, b) =>
        Number(a.key ?? false) - Number(b.key ?? false) || b.path.length - a.path.length || (b.at ?? 0) - (a.at ?? 0),
    );
    /** The new keys of each object, by its path. */
    const renamed = new Map<string, { holder: Holder; keys: Map<string, string> }>();
    for (const place of ordered) {
      const { holder, step } = holderOf(root, place.path);
      const text = this.#textOf(place);
      if (place.key) {
        const path = JSON.stringify(place.path.slice(0, -1));
        const { keys } = renamed.get(path) ?? { keys: new Map<string, string>() };
        const from = String(step);
        keys.set(from, restoreSecret(keys.get(from) ?? from.slice(0, from.length - (place.cut ?? 0)), place.at, text));
        renamed.set(path, { holder, keys });
      } else holder[step] = place.at === undefined ? Number(text) : restoreSecret(String(holder[step]), place.at, text);
    }
    for (const { holder, keys } of renamed.values()) renameKeys(holder, keys);
    return { value: root.value, gone };
  }

  #textOf({ secret, form }: RedactedPlace): string {
    const value = this.#values[secret];
    if (value === undefined) return redactedText;
    const forms = form === undefined || value.length < insideCharactersMin ? [] : this.#formsOf(secret, value);
    // After a secret's value has changed, one encoding may equal another.
    return forms.find((one) => one.form === form)?.text ?? value;
  }

  /** The forms of a secret. From then on, they are found in texts. */
  #formsOf(secret: string, value: string): Form[] {
    const known = this.#forms.get(secret);
    if (known !== undefined) return known;
    const forms = formsOf(secret, value);
    this.#forms.set(secret, forms);
    for (const form of forms) this.#inside.add({ text: form.text, of: form });
    return forms;
  }

  #redactText(text: string): { value: string; found: Found[] } {
    const found: Found[] = [];
    let out = '';
    let from = 0;
    for (const { start, form } of this.#findIn(text)) {
      out += text.slice(from, start);
      found.push({ at: out.length, form });
      out += redactedText;
      from = start + form.text.length;
    }
    return { value: out + text.slice(from), found };
  }

  #redactNumber(number: number): { value: unknown; found: Found[] } {
    const text = String(number);
    const form = this.#plain.get(text);
    return form ? { value: redactedText, found: [{ at: undefined, form }] } : { value: number, found: [] };
  }

  /** Whether JSON text may contain a secret. Prepares the forms of those secrets. */
  #mayBeIn(json: string): boolean {
    const begun = new Set([...new Set(this.#startsJson.findAll(json))].flat());
    for (const [secret, value] of Object.entries(this.#values)) if (begun.has(secret)) this.#formsOf(secret, value);
    if (begun.size > 0) return true;
    for (const text of this.#whole.keys()) if (json.includes(jsonOf(text))) return true;
    return false;
  }

  /** The secrets in a text from left to right; of several that start at one position, the longest. */
  #findIn(text: string): Match[] {
    const whole = this.#whole.get(text);
    if (whole !== undefined) return [{ start: 0, form: whole }];
    return Array.from(this.#inside.find(text), ({ start, of: form }) => ({ start, form }));
  }
}

function jsonOf(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const base64s = ['base64', 'base64url'] as const;
const byteShifts = [0, 1, 2];

/** The forms of a secret: plain, in a URL, in a form body, in JSON text, in hexadecimal, and in base64 at any byte offset. */
function formsOf(secret: string, value: string): Form[] {
  const forms = new Map<string, string | undefined>([[value, undefined]]);
  const add = (form: string, text: string) => {
    if (!forms.has(text)) forms.set(text, form);
  };
  const bytes = Buffer.from(value, 'utf8');
  if (bytes.length >= encodedBytesMin) {
    add('json', jsonOf(value));
    add('url', encodeURIComponent(value));
    add('form', formEncode(value));
    add('hex', bytes.toString('hex'));
    add('hex-upper', bytes.toString('hex').toUpperCase());
    for (const encoding of base64s) {
      add(encoding, bytes.toString(encoding));
      for (const shift of byteShifts) add(`${encoding}-${shift}`, base64Within(bytes, encoding, shift));
    }
  }
  return [...forms].map(([text, form]) => ({ secret, form, text }));
}

/** Texts such that every form of the value begins with one of them. */
function startsOf(value: string): Set<string> {
  // Whole characters, because half a surrogate pair is encoded differently.
  const start = [...value.slice(0, 2 * startCharacters)].slice(0, startCharacters).join('');
  const bytes = Buffer.from(start, 'utf8');
  const starts = new Set([start]);
  if (bytes.length < encodedBytesMin) return starts;
  starts.add(bytes.toString('hex')).add(bytes.toString('hex').toUpperCase());
  starts.add(jsonOf(start)).add(encodeURIComponent(start)).add(formEncode(start));
  for (const encoding of base64s) for (const shift of byteShifts) starts.add(base64Within(bytes, encoding, shift));
  return starts;
}

function formEncode(text: string): string {
  return new URLSearchParams({ a: text }).toString().slice(2);
}

/** The characters that depend only on these bytes, for this offset within a group of three bytes. */
function base64Within(bytes: Buffer, encoding: (typeof base64s)[number], shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString(encoding);
  return text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
}

/** The offset of an end of the text that may be the beginning, or all, of this form; the text's length if none. */
function startOfUnfinished(text: string, form: string): number {
  const first = form.charAt(0);
  let at = text.indexOf(first, Math.max(0, text.length - form.length));
  while (at >= 0 && !form.startsWith(text.slice(at))) at = text.indexOf(first, at + 1);
  return at < 0 ? text.length : at;
}

type Steps = {
  leaf(leaf: string | number, path: Path): unknown;
  /** Renames an object's members, in order. */
  keys(keys: string[], path: Path): string[];
};

/** Copies a JSON value through these steps, without recursion, because only the value's size limits its nesting. */
function copyJson(value: unknown, steps: Steps): unknown {
  const root: Holder = { value: undefined };
  const open: { given: unknown; holder: Holder; step: string | number; path: Path }[] = [
    { given: value, holder: root, step: 'value', path: [] },
  ];
  for (let next = open.pop(); next; next = open.pop()) {
    const { given, holder, step, path } = next;
    if (typeof given === 'string' || typeof given === 'number') holder[step] = steps.leaf(given, path);
    else if (typeof given !== 'object' || given === null) holder[step] = given;
    else {
      const keys = Object.keys(given);
      const names = Array.isArray(given) ? keys.map(Number) : steps.keys(keys, path);
      const copy = (
        Array.isArray(given) ? new Array(keys.length).fill(null) : Object.fromEntries(names.map((name) => [name, null]))
      ) as Holder;
      holder[step] = copy;
      for (const [index, key] of keys.entries()) {
        const name = names[index] ?? key;
        open.push({ given: (given as Holder)[key], holder: copy, step: name, path: [...path, name] });
      }
    }
  }
  return root.value;
}

/** The container of the value at a path, and the last step. Throws if the value does not have the path. */
function holderOf(root: Holder, path: Path): { holder: Holder; step: string | number } {
  let holder = root;
  let step: string | number = 'value';
  for (const next of path) {
    const inner = holder[step];
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, next))
      throw new Error('A redacted value does not match its recorded positions.');
    holder = inner as Holder;
    step = next;
  }
  return { holder, step };
}

function restoreSecret(text: string, at: number | undefined, secret: string): string {
  if (at === undefined || text.slice(at, at + redactedText.length) !== redactedText)
    throw new Error('A redacted string does not match its recorded positions.');
  return text.slice(0, at) + secret + text.slice(at + redactedText.length);
}

/** Renames members and keeps their order. */
function renameKeys(holder: Holder, keys: ReadonlyMap<string, string>): void {
  const members = Object.entries(holder);
  for (const [key] of members) delete holder[key];
  for (const [key, member] of members)
    Object.defineProperty(holder, keys.get(key) ?? key, {
      value: member,
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

/** @param tried the last number tried for each name, so that many equal names do not try the same numbers again. */
function unusedName(name: string, taken: ReadonlySet<string>, tried: Map<string, number>): string {
  for (let number = (tried.get(name) ?? 0) + 1; ; number++) {
    const numbered = number === 1 ? name : `${name}#${number}`;
    if (taken.has(numbered)) continue;
    tried.set(name, number);
    return numbered;
  }
}
