import { addHandbook } from './handbook.ts';
import { connect } from './quarry.ts';
import { lookUpTool } from './tool.ts';

const question = process.argv[2] ?? 'How long does a refund take?';
const quarry = connect();
await addHandbook(quarry, 'handbook');
console.log(await lookUpTool(quarry).execute({ question }));
