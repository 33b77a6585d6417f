import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { runPython } from '../../support/python.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * The tools and adapters of the Python client against a real server. LangChain and LlamaIndex are stand-ins of their
 * shape (test/fixtures/python), because the tests install nothing from PyPI.
 */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const site = await startSite({ '/': htmlPage('Home') });
after(async () => {
  await server.close();
  await site.close();
});
const { app, org, member, loner } = await server.provision.world();
const library = knowledgeOf(server, { key: app.secretKey });
const source = await library.createSource({ org: org.id });
const document = await library.push(source, `Otters hold hands. ${'Ö'.repeat(3_000)}`, { title: 'Otters' });
const hidden = await library.push(await library.createSource({ user: loner.id }), 'Otters of the loner.');
const other = await library.push(await library.createSource({ org: org.id }), 'Otters of another source.');
const double = { id: 'double', kind: 'complete', result: { twice: '{{$.n * 2}}' } };
await new AutomationsClient(server, app).createAutomation({ lookup_key: 'double', workflow: graphOf(double) });

/** Runs a program after the common beginning and returns what it prints, as JSON. */
async function python(program: string): Promise<unknown> {
  const opening = `import json, os
from quarry_client import Quarry
environ = os.environ
quarry = Quarry(environ["BASE"], token=environ["TOKEN"])
`;
  const { code, output, errors } = await runPython(['-c', `${opening}${program}`], {
    ...{ BASE: server.baseUrl, TOKEN: member.token, SITE: site.origin },
    ...{ SOURCE: source, DOCUMENT: document, HIDDEN: hidden, OTHER: other },
  });
  assert.equal(code, 0, errors);
  return JSON.parse(output);
}

test('tools can be restricted, are bounded, and tell a model about errors', async () => {
  const said = (await python(`
from quarry_client.tools import agent_functions
search, read, kv_put, kv_get, run, extract = agent_functions(
    quarry, ["search", "read", "kv_put", "kv_get", "run", "extract"],
    sources=[environ["SOURCE"]], automations=["double"], kv_prefix="agent/", characters_max=1000)
(anything,) = agent_functions(quarry, ["read"])
(nowhere,) = agent_functions(Quarry("http://127.0.0.1:1", retries=0), ["search"])
kv_put("theme", "dark")
print(json.dumps([
    search("otters"), read(environ["DOCUMENT"]), read(environ["OTHER"]), anything(environ["HIDDEN"]),
    kv_get("theme"), quarry.kv.get("agent/theme")["value"], run("double", {"n": 4}), run("other", {}),
    extract(environ["SITE"] + "/"), extract("http://10.0.0.1/"), nowhere("x"), len(search("otters")),
]))`)) as (string | number)[];
  const expected = [
    /^\[1\] Otters, cdo_\w+, lines 1-1, bytes 0-/,
    /^Otters hold hands[\s\S]*\[There is more: call read with offset \d+\.\]$/,
    /^Failed: the document belongs to a source/,
    /^Failed: The resource does not exist, or you may not see it \(404 not_found\)\.$/,
    ...[/^dark$/, /^dark$/],
    /^atr_\w+ is completed\. \{'twice': 8\}$/,
    /^Failed: automation must be one of double\.$/,
    /Home/,
    /^Failed: url.*\(422 invalid_parameters\)\.$/,
    /^Failed: http:.* cannot be reached/,
  ];
  for (const [at, pattern] of expected.entries()) assert.match(String(said[at]), pattern);
  assert.ok(Number(said.at(-1)) <= 1_000);
});

test('the retriever and tools of LangChain meet the contract of its base classes', async () => {
  const found = await python(`
from quarry_client.langchain import QuarryRetriever, quarry_tools
retriever = QuarryRetriever(quarry=quarry, sources=[environ["SOURCE"]], max_results=1)
documents = retriever.invoke("hands")
search, run = quarry_tools(quarry, ["search", "run"], automations=["double"])
print(json.dumps([
    documents[0].page_content[:18], documents[0].metadata["title"], documents[0].metadata["start_line"],
    search.name, search.description[:14], sorted(run.args), search.invoke({"query": "hands"})[:11],
    run.invoke({"automation": "double", "payload": {"n": 1}})[-13:],
]))`);
  assert.deepEqual(found, [
    ...['Otters hold hands.', 'Otters', 1],
    ...['search', 'Finds passages', ['automation', 'payload'], '[1] Otters,', " {'twice': 2}"],
  ]);
});

test('the retriever and tools of LlamaIndex meet the contract of its base classes', async () => {
  const found = await python(`
from quarry_client.llamaindex import QuarryRetriever, quarry_tools
nodes = QuarryRetriever(quarry, sources=[environ["SOURCE"]], max_results=1).retrieve("hands")
(search,) = quarry_tools(quarry, ["search"])
print(json.dumps([
    nodes[0].node.get_content()[:18], nodes[0].node.metadata["document"], nodes[0].score > 0,
    search.description.splitlines()[0], search.call(query="hands")[:11],
]))`);
  assert.deepEqual(found, [...['Otters hold hands.', document, true], ...['search(query: str) -> str', '[1] Otters,']]);
});
