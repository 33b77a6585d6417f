import './cached-parsers.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';

/*
 * A server that this file is loaded into starts its first parser with its first document. Most of those that tests start
 * are killed before they have read any, and the start takes half a second of processor time.
 */
ParserPool.prototype.warm = () => {};
