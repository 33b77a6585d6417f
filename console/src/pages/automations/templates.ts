/** Templates for new automations. They follow the examples of docs/automations.md; a test checks each on the server. */
export const templates: { id: string; name: string; text: string }[] = [
  {
    id: 'hello',
    name: 'Say hello',
    text: `name: Hello
type: invoked
input_schema:
  type: object
  properties:
    name: { type: string, default: Ada }
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: start
  nodes:
    - id: start
      kind: trigger
      on_success: greet
    - id: greet
      kind: transform
      value: "Hello {{$.name}}"
      on_success: done
    - id: done
      kind: complete
      result:
        greeting: "{{$nodes.greet}}"
`,
  },
  {
    id: 'approval',
    name: 'Ask for approval',
    text: `name: Ask for approval
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: ask
  nodes:
    - id: ask
      kind: wait_for_signal
      name: approval
      timeout_seconds: 86400
      on_success: decide
      on_timeout: late
    - id: decide
      kind: conditional
      when: "$nodes.ask.approved"
      on_true: approved
      on_false: refused
    - id: approved
      kind: complete
      result: approved
    - id: refused
      kind: fail
      message: Refused
    - id: late
      kind: fail
      message: Nobody approved it within a day
`,
  },
  {
    id: 'nightly',
    name: 'Every night',
    text: `name: Nightly check
type: scheduled
schedule: "0 3 * * *"
timezone: Europe/Berlin
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: fetch
  nodes:
    - id: fetch
      kind: http_request
      method: GET
      url: https://example.com/status.json
      retry: { max_attempts: 3, initial_seconds: 10 }
      on_success: done
    - id: done
      kind: complete
      result: "{{$nodes.fetch.status}}"
`,
  },
  {
    id: 'event',
    name: 'On an event',
    text: `name: Note each order
type: trigger
trigger: order.created
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: note
  nodes:
    - id: note
      kind: transform
      value: "Order {{$.payload.id}}"
      on_success: done
    - id: done
      kind: complete
      result: "{{$nodes.note}}"
`,
  },
  {
    id: 'fan-out',
    name: 'For each item of a list',
    text: `name: Greet everybody
type: invoked
input_schema:
  type: object
  properties:
    names: { type: array, default: [Ada, Grace] }
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: each
  nodes:
    - id: each
      kind: for_each
      items: "$.names"
      concurrency: 4
      node:
        id: greet
        kind: transform
        value: "Hello {{$item}}"
      on_success: done
    - id: done
      kind: complete
      result: "{{$nodes.each}}"
`,
  },
  {
    id: 'generate',
    name: 'Ask a language model',
    text: `# Needs a language model: the operator of the server sets QUARRY_LLM_URL and QUARRY_LLM_MODEL.
name: Sort a complaint
type: invoked
input_schema:
  type: object
  properties:
    text: { type: string, default: My parcel has not arrived. }
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: sort
  nodes:
    - id: sort
      kind: generate
      messages:
        - role: system
          content: You sort complaints of customers.
        - role: user
          content: "{{$.text}}"
      schema:
        type: object
        properties:
          topic: { enum: [delivery, price, quality, other] }
          urgent: { type: boolean }
        required: [topic, urgent]
        additionalProperties: false
      tokens: 200
      on_success: done
    - id: done
      kind: complete
      result: "{{$nodes.sort.data}}"
`,
  },
];
