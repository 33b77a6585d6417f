import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { addHandbook } from '../src/handbook.ts';
import { connect } from '../src/quarry.ts';
import { lookUpTool } from '../src/tool.ts';

const quarry = connect();
before(() => addHandbook(quarry, 'handbook'));

test('the tool finds the passage that answers a question', async () => {
  const text = await lookUpTool(quarry).execute({ question: 'how long until I am refunded' });
  assert.match(text, /^refunds: .*five days/s);
});

test('a question must not be empty', async () => {
  await assert.rejects(lookUpTool(quarry).execute({ question: '' }), /question/);
});
