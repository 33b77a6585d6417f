import { resolve } from 'node:path';
import type { Form } from './forms.ts';

type Read<T> = { value: T } | { problem: string };
export type Setting<T> = {
  variable: string;
  fallback: T;
  description: string;
  secret?: boolean;
  read(raw: string): Read<T>;
};

export function text(variable: string, fallback: string, description: string, form?: Form): Setting<string>;
export function text(
  variable: string,
  fallback: undefined,
  description: string,
  form?: Form,
): Setting<string | undefined>;
export function text(
  variable: string,
  fallback: string | undefined,
  description: string,
  form?: Form,
): Setting<string | undefined> {
  const read = (raw: string): Read<string> =>
    form === undefined || form.accepts(raw)
      ? { value: raw }
      : { problem: `must be ${form.words}, such as ${form.example}, not "${raw}"` };
  return { variable, fallback, description, read };
}

/** A text that is never shown, even if it is not valid. */
export function secretText(variable: string, description: string, form?: Form): Setting<string | undefined> {
  const read = (raw: string): Read<string> =>
    form === undefined || form.accepts(raw)
      ? { value: raw }
      : { problem: `must be ${form.words}, such as ${form.example}` };
  return { variable, fallback: undefined, description, secret: true, read };
}

export function path(variable: string, fallback: string, description: string): Setting<string> {
  return { variable, fallback: resolve(fallback), description, read: (raw) => ({ value: resolve(raw) }) };
}

export function url(variable: string, fallback: undefined, description: string): Setting<string | undefined> {
  return {
    variable,
    fallback,
    description,
    read: (raw) =>
      /^https?:\/\//i.test(raw) && URL.canParse(raw)
        ? { value: raw.replace(/\/+$/, '') }
        : { problem: `must be an http or https URL, such as https://quarry.example.com, not "${raw}"` },
  };
}

export function integer(
  variable: string,
  fallback: number,
  range: { min: number; max: number },
  description: string,
): Setting<number> {
  return {
    variable,
    fallback,
    description,
    read: (raw) => {
      const value = Number(raw);
      return /^-?\d+$/.test(raw) && value >= range.min && value <= range.max
        ? { value }
        : { problem: `must be a whole number from ${range.min} to ${range.max}, such as ${fallback}, not "${raw}"` };
    },
  };
}

export function ratio(variable: string, fallback: number, description: string): Setting<number> {
  return {
    variable,
    fallback,
    description,
    read: (raw) => {
      const value = Number(raw);
      return /^\d*\.?\d+$/.test(raw) && value <= 1
        ? { value }
        : { problem: `must be a number from 0 to 1, such as 0.1, not "${raw}"` };
    },
  };
}

export function countOrAuto(
  variable: string,
  range: { min: number; max: number },
  description: string,
): Setting<number | 'auto'> {
  const { read } = integer(variable, range.min, range, description);
  return {
    variable,
    fallback: 'auto',
    description,
    read: (raw) => {
      if (raw === 'auto') return { value: 'auto' };
      const number = read(raw);
      return 'value' in number ? number : { problem: number.problem.replace(/^must be/, 'must be auto or') };
    },
  };
}

export function optionalInteger(
  variable: string,
  range: { min: number; max: number },
  description: string,
): Setting<number | undefined> {
  return { ...integer(variable, range.min, range, description), fallback: undefined };
}

export function rate(variable: string, fallback: number, what: string): Setting<number> {
  const description = `Maximum number of ${what} per minute of one credential, over all processes; 0 for no limit.`;
  return integer(variable, fallback, { min: 0, max: 1_000_000_000 }, description);
}

export function quota(variable: string, what: string): Setting<number> {
  const description = `${what} that an app, and each of its sandboxes, may have; 0 for no limit.`;
  return integer(variable, 0, { min: 0, max: Number.MAX_SAFE_INTEGER }, description);
}

export function boolean(variable: string, fallback: boolean, description: string): Setting<boolean> {
  return {
    variable,
    fallback,
    description,
    read: (raw) => {
      if (/^(true|1|yes|on)$/i.test(raw)) return { value: true };
      if (/^(false|0|no|off)$/i.test(raw)) return { value: false };
      return { problem: `must be true or false, not "${raw}"` };
    },
  };
}

export function list(variable: string, fallback: string[], description: string, form: Form): Setting<string[]> {
  return {
    variable,
    fallback,
    description,
    read: (raw) => {
      const value = raw.split(',').map((item) => item.trim());
      const wrong = value.find((item) => !form.accepts(item));
      if (wrong === undefined) return { value };
      const what = wrong === '' ? 'has an empty item' : `has "${wrong}"`;
      return { problem: `must be a list with commas, each ${form.words}, such as ${form.example}, but ${what}` };
    },
  };
}

export function oneOf<const T extends string>(
  variable: string,
  fallback: T,
  values: readonly T[],
  description: string,
): Setting<T> {
  return {
    variable,
    fallback,
    description,
    read: (raw) =>
      (values as readonly string[]).includes(raw)
        ? { value: raw as T }
        : { problem: `must be one of ${values.join(', ')}, not "${raw}"` },
  };
}

export class ConfigError extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    super(`The configuration has ${problems.length === 1 ? 'an error' : `${problems.length} errors`}:
${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export function isWeakSecret(secret: string): boolean {
  return secret.length < 32 || new Set(secret).size < 8 || /change.?me|example|secret|password/i.test(secret);
}

/** Languages for stemming, as Snowball names them (`english` is Porter2). `none` disables stemming. */
export const stemLanguages = [
  'none',
  'arabic',
  'basque',
  'catalan',
  'czech',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'hungarian',
  'irish',
  'italian',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'slovene',
  'spanish',
  'swedish',
  'tamil',
  'turkish',
] as const;
