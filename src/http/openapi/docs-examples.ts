/** The first steps of a newcomer, for bash and curl. `{base}` is the address of the page that shows them. */
export const referenceExamples: { title: string; text: string }[] = [
  {
    title: 'Your shell',
    text: `export BASE={base}
export KEY=sk_… # a secret key of your app
id() { grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4; } # the id in a response`,
  },
  {
    title: 'Create a user, with a token',
    text: `USER_ID=$(curl -s $BASE/api/v1/users -H "x-api-key: $KEY" --json '{"email": "ada@example.com", "name": "Ada"}' | id)
curl -s -X POST $BASE/api/v1/users/$USER_ID/tokens -H "x-api-key: $KEY" --json '{}'`,
  },
  {
    title: 'Upload a document and read it as Markdown',
    text: `printf '<h1>Refunds</h1><p>A refund takes <b>five days</b>.</p>' > refunds.html
FILE=$(curl -s $BASE/api/v1/files/uploads -H "x-api-key: $KEY" -H 'Content-Type: text/html' \\
  -H 'X-Filename: refunds.html' --data-binary @refunds.html | id)
curl -s $BASE/api/v1/extractions -H "x-api-key: $KEY" \\
  --json "{\\"file\\": \\"$FILE\\", \\"destination_kind\\": \\"storage\\"}"`,
  },
  {
    title: 'Read a web page as Markdown',
    text: `EXTRACTION=$(curl -s $BASE/api/v1/extractions -H "x-api-key: $KEY" \\
  --json '{"url": "https://example.com/", "mode": "link", "destination_kind": "storage"}' | id)
curl -s $BASE/api/v1/extractions/$EXTRACTION/stream -H "x-api-key: $KEY" # closes when it is done`,
  },
  {
    title: 'Make a text searchable, and search it',
    text: `AGENT=$(curl -s $BASE/api/v1/agents -H "x-api-key: $KEY" --json '{"name": "Librarian"}' | id)
SOURCE=$(curl -s $BASE/api/v1/knowledge_sources -H "x-api-key: $KEY" \\
  --json "{\\"type\\": \\"knowledge/documents\\", \\"agent\\": \\"$AGENT\\"}" | id)
curl -s $BASE/api/v1/knowledge_sources/$SOURCE/ingest -H "x-api-key: $KEY" \\
  --json '{"title": "Refunds", "content": {"data": "A refund takes five days."}}'
curl -s $BASE/api/v1/agents/$AGENT/search -H "x-api-key: $KEY" --json '{"query": "how long is a refund"}'`,
  },
  {
    title: 'Keep a value for a user',
    text: `curl -s -X PUT $BASE/api/v1/kv/theme -H "x-api-key: $KEY" --json "{\\"value\\": \\"dark\\", \\"user\\": \\"$USER_ID\\"}"
curl -s "$BASE/api/v1/kv/theme?user=$USER_ID" -H "x-api-key: $KEY"`,
  },
  {
    title: 'Create an automation and run it',
    text: `AUTOMATION=$(curl -s $BASE/api/v1/automations -H "x-api-key: $KEY" --json '{"name": "Greet", "type": "invoked",
  "workflow": {"kind": "WorkflowGraph", "version": 1, "start_node": "greet",
    "nodes": [{"id": "greet", "kind": "transform", "value": "Hello {{$.name}}"}]}}' | id)
curl -s -X POST $BASE/api/v1/automations/$AUTOMATION/activate -H "x-api-key: $KEY"
RUN=$(curl -s $BASE/api/v1/automations/$AUTOMATION/invoke -H "x-api-key: $KEY" \\
  --json '{"payload": {"name": "Grace"}}' | id)
curl -s $BASE/api/v1/automation_runs/$RUN/stream -H "x-api-key: $KEY" # closes when the run ends`,
  },
];
