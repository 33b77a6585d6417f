import { strict } from '../../http/route/route.ts';
import { Type } from '../../lib/type.ts';
import { defineTool, type Tool, toolLimits, truncateText } from '../tool.ts';

type Answer = {
  status: string;
  text: string;
  sentences: { text: string; unsupported: boolean }[];
  citations: {
    number: number;
    document: string;
    title?: string;
    start_line: number;
    end_line: number;
    content: string;
  }[];
};

const answer = defineTool({
  name: 'answer',
  title: 'Answer from knowledge',
  operation: 'createAnswer',
  description:
    'Answers a question from everything that you can see, or from one source, or from all sources of one agent. Sentences that cite nothing or misquote are left out. Without a language model, returns the best passages.',
  hints: { reads: true },
  input: strict({
    query: Type.String({ minLength: 1, maxLength: 10_000, description: 'The question.' }),
    source: Type.Optional(Type.String({ description: 'cso_…; only this source.' })),
    agent: Type.Optional(Type.String({ description: "agt_… or the agent's lookup key; only its sources." })),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'A model or an alias.' })),
  }),
  output: Type.Object({
    status: Type.String({ description: 'answered, extracts, not_in_sources, unsupported or model_refused.' }),
    text: Type.String(),
    citations: Type.Array(
      Type.Object({
        number: Type.Integer({ description: 'As in [1] in the text.' }),
        document: Type.String(),
        title: Type.Optional(Type.String()),
        start_line: Type.Integer(),
        end_line: Type.Integer(),
        content: Type.String(),
      }),
    ),
  }),
  async run({ source, ...rest }, { api }) {
    const body = { ...rest, ...(source === undefined ? {} : { sources: [source] }), unsupported: 'remove' };
    const { status, text, citations } = await api<Answer>('POST', '/api/v1/answers', { body });
    const cited = citations.map(({ number, document, title, start_line, end_line, content }) => ({
      ...{ number, document, start_line, end_line },
      ...(title === undefined ? {} : { title }),
      content: truncateText(content, toolLimits.passageCharactersMax),
    }));
    const list = cited.map(({ number, document, title, start_line, end_line }) => {
      const name = title === undefined ? document : `${title} (${document})`;
      return `[${number}] ${name}, lines ${start_line}-${end_line}`;
    });
    const shown = text === '' ? `No text: ${status}.` : `${text}\n\n${list.join('\n')}`;
    return { data: { status, text, citations: cited }, text: shown };
  },
});

export const answerTools: readonly Tool[] = [answer];
