import { InvalidArgumentError } from 'commander';

/** A whole number from 1. */
export function readCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new InvalidArgumentError('It must be a whole number of at least 1.');
  return count;
}

/** A number from 0 to 1. */
export function readShare(text: string): number {
  const share = Number(text);
  if (text.trim() === '' || !(share >= 0 && share <= 1)) throw new InvalidArgumentError('It must be from 0 to 1.');
  return share;
}

/** A whole number from 0. */
export function readNumber(text: string): number {
  const count = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(count) || count < 0)
    throw new InvalidArgumentError('It must be a whole number.');
  return count;
}
