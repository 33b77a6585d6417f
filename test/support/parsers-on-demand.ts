import './cached-parsers.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';

/*
 * Loaded into a server, this file makes it start its first parser with its first document. Tests kill most of their
 * servers before they read one, and the start of a parser takes half a second of processor time.
 */
ParserPool.prototype.warm = () => {};
