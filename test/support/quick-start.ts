import './cached-parsers.ts';
import './own-modules.ts';
import { syncBuiltinESMExports } from 'node:module';
import vm from 'node:vm';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';

/*
 * Loaded into a server, this file leaves out of its start what a test that kills it soon does not need. It starts its
 * first parser with its first document: the start of a parser takes half a second of processor time. It does not return
 * the memory of its start to the system: that takes three tenths.
 */
ParserPool.prototype.warm = () => {};

const { runInNewContext } = vm;
vm.runInNewContext = (code, ...more) => (code === 'gc' ? () => {} : runInNewContext(code, ...more));
syncBuiltinESMExports();
