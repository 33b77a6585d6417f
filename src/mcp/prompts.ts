import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

type Prompt = {
  name: string;
  title: string;
  description: string;
  arguments: { name: string; description: string; required: boolean }[];
  write(given: Record<string, string>): string;
};

const prompts: readonly Prompt[] = [
  {
    name: 'answer_from_knowledge',
    title: 'Answer from knowledge',
    description: 'Answers a question from the documents that you can see, with their lines as evidence.',
    arguments: [
      { name: 'question', description: 'What to answer.', required: true },
      { name: 'source', description: 'cso_…; only this source.', required: false },
    ],
    write: ({ question, source }) =>
      `Answer this question: ${question}

Call search_knowledge${source === undefined ? '' : ` with source ${source}`}, more than once in other words if the passages do not suffice. Read around a passage with read_document. Use nothing but what you have found there. Name the title and lines of the document behind each statement. If the documents do not say it, say so.`,
  },
  {
    name: 'summarize_document',
    title: 'Summarize a document',
    description: 'Summarizes one document, however long it is.',
    arguments: [{ name: 'document', description: 'cdo_…', required: true }],
    write: ({ document }) =>
      `Summarize the document ${document}. Read all of it with read_document: while a result has next_offset, call again with it as offset. Keep names, numbers and dates as they are written.`,
  },
  {
    name: 'research_site',
    title: 'Read a site',
    description: 'Extracts a page or a site and reports what it says about a topic.',
    arguments: [
      { name: 'url', description: 'Where to begin.', required: true },
      { name: 'topic', description: 'What to look for.', required: true },
    ],
    write: ({ url, topic }) =>
      `Find what ${url} says about: ${topic}

Call extract_url, with mode site if one page is not enough. If it returns before it is done, call read_extraction with its id until it is. Report what you have found, each statement with the address of its page.`,
  },
];

export function listPrompts() {
  return { prompts: prompts.map(({ write: _write, ...shown }) => shown) };
}

/** The prompt with these arguments. Throws ProtocolError that names what is missing or unknown. */
export function getPrompt(name: string, given: Record<string, string> = {}) {
  const prompt = prompts.find((each) => each.name === name);
  if (prompt === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The prompt ${name} does not exist.`);
  const missing = prompt.arguments.filter((each) => each.required && !given[each.name]).map((each) => each.name);
  const unknown = Object.keys(given).filter((each) => !prompt.arguments.some((known) => known.name === each));
  const problems = [...missing.map((each) => `${each}: is required`), ...unknown.map((each) => `${each}: is unknown`)];
  if (problems.length > 0) throw new ProtocolError(ProtocolErrorCode.InvalidParams, problems.join('; '));
  const content = { type: 'text' as const, text: prompt.write(given) };
  return { description: prompt.description, messages: [{ role: 'user' as const, content }] };
}
