// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients

/** What one principal may do with a file. */
export type Grant = {
/** The kind of principal. */
principal_type: 'user' | 'team' | 'org' | 'org_role' | 'agent' | 'everyone';
/** An id, or the role for `org_role`. Omit it for `everyone`. */
principal?: string | undefined;
/** What the principal may do. */
actions: Array<string>;
};

/** A principal whose grant is removed. */
export type GrantRemoval = {
/** The kind of principal. */
principal_type: 'user' | 'team' | 'org' | 'org_role' | 'agent' | 'everyone';
/** An id, or the role for `org_role`. Omit it for `everyone`. */
principal?: string | undefined;
};

/** An image and where to fetch it. */
export type ImageSource = {
/** The file (`fil_…`). */
file?: string | undefined;
/** The URL. */
url?: string | undefined;
/** Where to get a new `url` after this one has expired. */
refresh_url?: string | undefined;
/** The media type. */
mime_type?: string | undefined;
/** The width in pixels. */
width?: number | undefined;
/** The height in pixels. */
height?: number | undefined;
};

/** Either `grants`, which replaces the list, or `add` and `remove`, which change it. */
export type AclInput = {
/** Who may do what: the whole list. */
grants?: Array<Grant> | undefined;
/** Grants to add, or to merge with those of the same principal. */
add?: Array<Grant> | undefined;
/** Principals whose grants are removed. */
remove?: Array<GrantRemoval> | undefined;
};

/** An image to store. */
export type Picture = {
/** The image in base64. */
data: string;
/** The filename with its extension. */
filename: string;
/** image/… */
mime_type: string;
};

/** What a document was at a time. */
export type KnowledgeDocumentVersion = {
/** cdo_… */
document: string;
/** cso_… */
source: string;
/** Its number. The first version of a document is 1. */
version: number;
/** Whether the document is so now. */
current: boolean;
/** The title then. */
title?: string | undefined;
/** The metadata then. */
metadata: Record<string, unknown>;
/** The media type of what it was read from. */
content_type?: string | undefined;
/** The SHA-256 of its text, in hexadecimal. */
content_hash: string;
/** The lines of its text. */
total_lines: number;
/** The bytes of its text. */
total_size: number;
/** Where it came from. */
source_url?: string | undefined;
/** Its id where it came from. */
external_id?: string | undefined;
/** When it became the current version. */
created_at: string;
/** When the next version replaced it. */
replaced_at?: string | undefined;
/** When the document was deleted, if that ended this version. */
deleted_at?: string | undefined;
};

/** A sentence of an answer, with what was checked. */
export type AnswerSentence = {
/** The sentence. */
text: string;
/** Where it begins in the text of the answer, in UTF-16 code units. */
start: number;
/** Where it ends; exclusive. */
end: number;
/** `supported`: the judge says that the passages support it. Otherwise `quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a passage. `uncited`: neither. */
status: 'supported' | 'quoted' | 'cited' | 'uncited';
/** Whether it cites nothing, has a quote that is altered or missing, or is not supported in the verdict of the judge. */
unsupported: boolean;
/** Of the judge, if the operator has set one and it ruled on this sentence. */
verdict?: 'supported' | 'not_supported' | undefined;
/** The numbers of the passages that it cites. */
citations: Array<number>;
/** Its quotes, in their order. */
quotes: Array<{
/** The quote. */
text: string;
/** Where it begins in `text`, in UTF-16 code units. */
start?: number | undefined;
/** Where it ends; exclusive. */
end?: number | undefined;
/** `exact`: the document has these characters. `normalised`: it differs in white space, quotation marks, dashes, hyphens at line ends, the pipes of tables or emphasis, never in case, digits or words. `elided`: its parts stand in this order under one heading. `altered`: the document says something similar, see `difference`. `not_found`: in no document that the caller may read. `too_short`: under three words. */
status: 'exact' | 'normalised' | 'elided' | 'altered' | 'not_found' | 'too_short';
/** cdo_…; the document that says this, or something similar. */
document?: string | undefined;
/** cso_… */
source?: string | undefined;
/** The title of the document. */
title?: string | undefined;
/** The version of the document: the SHA-256 of its text, in hexadecimal. */
content_hash?: string | undefined;
/** The version of the document. Absent if its source keeps none. */
version?: number | undefined;
/** One, or one for each part of an elided quote. */
places?: Array<{
/** Where it begins in the text of the document. */
start_byte: number;
/** Where it ends; exclusive. */
end_byte: number;
/** Present if the text has page marks. */
start_page?: number | undefined;
/** Its last page. */
end_page?: number | undefined;
/** What the document says there. */
text: string;
/** With `boxes`: where it stands on the pages of the PDF, one rectangle for each line; empty if unknown. */
boxes?: Array<{
/** The page, from 1. */
page: number;
/** In points from the left edge of the page as it is shown. */
left: number;
/** In points from the upper edge. */
top: number;
/** In points from the left edge. */
right: number;
/** In points from the upper edge. */
bottom: number;
/** The width of the page in points. */
page_width: number;
/** Its height. */
page_height: number;
}> | undefined;
}> | undefined;
/** Only if `altered`: the words of the quote and of the document, in their order. */
difference?: Array<{
/** Who has these words. */
type: 'same' | 'only_in_quote' | 'only_in_source';
/** The words. */
text: string;
}> | undefined;
/** The number of the citation that it stands in. */
citation?: number | undefined;
}>;
};

/** A passage that an answer cites or quotes. */
export type Citation = {
/** The number by which the text cites it, as in [1]. */
number: number;
/** cdo_… */
document: string;
/** cso_… */
source: string;
/** cim_…; the passage. */
chunk: string;
/** The version of the document: the SHA-256 of its text. */
content_hash: string;
/** The version of the document. Absent if its source keeps none. */
version?: number | undefined;
/** The title of the document. */
title?: string | undefined;
/** Where the document comes from. */
source_url?: string | undefined;
/** Leads to the heading on the page at `source_url`. */
fragment?: string | undefined;
/** The headings above the passage. */
heading_path: Array<string>;
/** Where the passage begins in the text of the document. */
start_byte: number;
/** Where it ends; exclusive. */
end_byte: number;
/** Its first line, from 1. */
start_line: number;
/** Its last line. */
end_line: number;
/** Present if the text has page marks. */
start_page?: number | undefined;
/** Its last page. */
end_page?: number | undefined;
/** The passage. */
content: string;
};

/** The data of `generation_started`, `generation_text` and `generation_ended`. */
export type GenerationPart = {
/** The node that calls the model. */
node_id: string;
/** The command of the journal. */
command_id: string;
/** The attempt of the command. */
attempt: number;
/** The next part of the text. Only in `generation_text`. */
text?: string | undefined;
};

/** The data of the events `ready` and `reset`. */
export type StreamPosition = {
/** The position in the stream. */
position: number;
/** Why events are missing. Only in `reset`. */
message?: string | undefined;
};

/** A run in the list of all runs, without payload and result. */
export type AutomationRunSummary = {
/** atr_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The automation (`aut_…`). */
automation: string;
/** The type. */
type: 'trigger' | 'scheduled' | 'invoked';
/** The status. */
status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
/** The id of the node. */
node_id?: string | undefined;
} | undefined;
/** The id (`evt_…`) of the event that started it. */
event_id?: string | undefined;
/** The user or agent; absent for schedules, events and keys. */
invoked_by?: string | undefined;
/** The run (`atr_…`) that it repeats. */
retried_from?: string | undefined;
/** The run (`atr_…`) that started it. */
parent_run?: string | undefined;
/** The version of the graph that the run started with; absent without one. */
workflow_version?: number | undefined;
/** What the run waits for; absent if it does not wait. */
waiting_for?: {
/** People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far. */
kind: 'approval' | 'signal' | 'child' | 'time' | 'retry' | 'worker';
/** The node that waits. */
node_id?: string | undefined;
/** The approval (`apr_…`). */
approval?: string | undefined;
/** The name of the signal. */
name?: string | undefined;
/** The child: a run, an extraction or an ingestion. */
id?: string | undefined;
/** When the wait ends at the latest. */
until?: string | undefined;
/** The number of other nodes that also wait. */
others?: number | undefined;
/** Why the last worker could not continue the run. */
workflow_changed?: {
/** The step that the journal has. */
expected: unknown;
/** What the code asked for instead. */
found: unknown;
} | undefined;
} | undefined;
/** Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it. */
pending_for?: {
/** The limit of the automation that delays the run. */
limit: 'max_concurrent_runs' | 'concurrency' | 'rate';
/** When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further. */
until?: string | undefined;
/** The number of runs that start before it, counted up to 10,000. */
ahead: number;
} | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When the claim of the worker expires, in ISO 8601. */
lease_until?: string | undefined;
/** When it started, in ISO 8601. */
started_at?: string | undefined;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
/** The name of the automation. */
automation_name: string;
/** Whether the run is in progress but only waits for a time, a signal or a child run. */
waiting: boolean;
};

export type WorkflowJournal = {
/** wde_… */
id: string;
/** The status. */
status: 'pending' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';
/** The sequence of the newest entry. */
current_sequence: number;
/** When it started, in ISO 8601. */
started_at?: string | undefined;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** One step in the history of a run. */
export type WorkflowJournalEntry = {
/** wdr_… */
id: string;
/** Its number, from 1. */
sequence: number;
/** What happened, such as `node_completed`. */
type: string;
/** The id of the node. */
node_id?: string | undefined;
/** Identifies one execution of a node, the same for each of its attempts. */
command_id?: string | undefined;
/** Identifies the timer that the entry is about. */
timer_id?: string | undefined;
/** What the entry records. */
record: Record<string, unknown>;
/** When it was created, in ISO 8601. */
created_at: string;
};

/** A value for `$secrets` in graphs; it cannot be read back. */
export type AppSecret = {
/** The name. */
name: string;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** One run of an automation. */
export type AutomationRun = {
/** atr_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The automation (`aut_…`). */
automation: string;
/** The type. */
type: 'trigger' | 'scheduled' | 'invoked';
/** The status. */
status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
/** The data that comes with it. */
payload?: unknown | undefined;
/** Values that expressions of the run can read as `$participants`. */
participants?: Record<string, string> | undefined;
/** What the run returned. */
result?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
/** The id of the node. */
node_id?: string | undefined;
} | undefined;
/** The id (`evt_…`) of the event that started it. */
event_id?: string | undefined;
/** The user or agent; absent for schedules, events and keys. */
invoked_by?: string | undefined;
/** The run (`atr_…`) that it repeats. */
retried_from?: string | undefined;
/** The run (`atr_…`) that started it. */
parent_run?: string | undefined;
/** The version of the graph that the run started with; absent without one. */
workflow_version?: number | undefined;
/** What the run waits for; absent if it does not wait. */
waiting_for?: {
/** People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far. */
kind: 'approval' | 'signal' | 'child' | 'time' | 'retry' | 'worker';
/** The node that waits. */
node_id?: string | undefined;
/** The approval (`apr_…`). */
approval?: string | undefined;
/** The name of the signal. */
name?: string | undefined;
/** The child: a run, an extraction or an ingestion. */
id?: string | undefined;
/** When the wait ends at the latest. */
until?: string | undefined;
/** The number of other nodes that also wait. */
others?: number | undefined;
/** Why the last worker could not continue the run. */
workflow_changed?: {
/** The step that the journal has. */
expected: unknown;
/** What the code asked for instead. */
found: unknown;
} | undefined;
} | undefined;
/** Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it. */
pending_for?: {
/** The limit of the automation that delays the run. */
limit: 'max_concurrent_runs' | 'concurrency' | 'rate';
/** When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further. */
until?: string | undefined;
/** The number of runs that start before it, counted up to 10,000. */
ahead: number;
} | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When the claim of the worker expires, in ISO 8601. */
lease_until?: string | undefined;
/** When it started, in ISO 8601. */
started_at?: string | undefined;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** An end user of an app. */
export type User = {
/** usr_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The email address. */
email?: string | undefined;
/** The name. */
name?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The name of the organisation. */
org_name?: string | undefined;
/** The role in the organisation. */
org_role?: 'admin' | 'member' | 'viewer' | undefined;
/** Whether the user stands for a program instead of a person. */
is_system_user: boolean;
/** The last token of an issuer left out the groups of the user, because there are too many. It grants none. */
groups_overage?: true | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A tenant. Every other resource belongs to an app. */
export type App = {
/** dap_… */
id: string;
/** The name. */
name: string;
/** How long runs of automations without `retention` are kept after their end. Absent in lists, and if they are kept for ever. */
run_retention?: {
/** Days after their end for which completed and cancelled runs are kept. Default: no limit. */
days?: number | undefined;
/** How many completed and cancelled runs of each automation are kept, the newest. Default: no limit. */
runs?: number | undefined;
/** Days for which failed runs are kept. Default: `days`. */
failed_days?: number | undefined;
/** How many failed runs of each automation are kept, the newest. Default: `runs`. */
failed_runs?: number | undefined;
/** Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false. */
files?: boolean | undefined;
} | undefined;
/** `false` if no assistant may connect to the app by OAuth. Absent if they may, and in lists. */
assistants?: boolean | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** An order to erase a user, a document or a source, and what was deleted so far. */
export type Erasure = {
/** ers_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** usr_… */
user?: string | undefined;
/** cdo_… */
document?: string | undefined;
/** cso_… */
source?: string | undefined;
/** Whether files of documents are erased too. */
files: boolean;
/** `done`: the certificate can be read. */
status: 'running' | 'done';
/** How many of each kind were deleted, such as documents, chunks, postings, vectors, files and runs. */
removed: Record<string, number>;
/** When the erasure was ordered. */
created_at: string;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
};

/** The data of the event `event`. */
export type LoggedEvent = {
/** The event (`evt_…`). */
id: string;
/** The name of the event. */
type: string;
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The payload, as in the message to a webhook. */
data: unknown;
};

/** A stored file. */
export type StoredFile = {
/** fil_… */
id: string;
/** The name of the file. */
filename: string;
/** The media type. */
content_type: string;
/** The size in bytes. */
size: number;
/** SHA-256 of the contents, in hex. */
checksum: string;
/** Signed download URL, valid for one hour. */
url: string;
/** Signed URL of a small picture, if the request asked for one and the type has one. */
picture_url?: string | undefined;
/** Public URL that works while sharing is on. */
share_url?: string | undefined;
/** Whether the public URL of the picture works. */
shared: boolean;
image_source?: ImageSource | undefined;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** Who may read and change it, apart from its owner. */
acl?: {
/** Who may do what: the whole list. */
grants: Array<Grant>;
} | undefined;
/** A free key-value map for the program that stored the file. */
provider_metadata: Record<string, unknown>;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** The text of one document or page. */
export type ExtractionOutput = {
/** exo_… */
id: string;
/** The position of the output, from 0. */
ordinal: number;
/** The address of the page or document. */
source_url?: string | undefined;
/** The state. */
state: 'done' | 'failed';
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** The title. */
title?: string | undefined;
/** Metadata stated in the source. */
metadata: Record<string, unknown>;
/** The kind of web page. */
page_type?: 'article' | 'documentation' | 'service' | 'forum' | 'collection' | 'listing' | 'product' | undefined;
/** Structured data of a web page about its subject, unchanged: type, name, author, published, modified, price, currency, availability, rating, … */
structured?: Record<string, string> | undefined;
/** The pages whose text was recognised by OCR. */
ocr?: {
/** The page numbers, from 1. */
pages: Array<number>;
/** The mean confidence of the recognised characters, from 0 to 1. */
confidence: number;
} | undefined;
/** The document or page exceeds a limit, and the rest was not read. */
truncated?: boolean | undefined;
file?: StoredFile | undefined;
/** With a schema: the data, valid against it. For pages of a site and attachments, it is only in data_file. */
data?: unknown | undefined;
/** Positions of the values of data in the Markdown, in UTF-16 code units. A value that does not occur there has no span. */
spans?: Array<{
/** The JSON Pointer of the value in data. */
path: string;
/** The start. */
start: number;
/** The end of the value (exclusive). */
end: number;
}> | undefined;
data_file?: StoredFile | undefined;
/** Why there is no data. */
data_error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
};

/** Somebody among the readers of a source who sees a document. */
export type ReadGrant = {
/** `org_role`: a role in the organisation of the source. `everyone`: every reader of the source. */
principal_type: 'user' | 'team' | 'group' | 'org' | 'org_role' | 'agent' | 'everyone';
/** An id, or the role for `org_role`. Omit it for `everyone`. */
principal?: string | undefined;
/** Only `read`, the default. */
actions?: Array<'read'> | undefined;
};

/** Whose grant is removed. */
export type ReadGrantRemoval = {
/** `org_role`: a role in the organisation of the source. `everyone`: every reader of the source. */
principal_type: 'user' | 'team' | 'group' | 'org' | 'org_role' | 'agent' | 'everyone';
/** An id, or the role for `org_role`. Omit it for `everyone`. */
principal?: string | undefined;
};

/** Who among the readers of the source sees the document. Developers and secret keys always do. Without it, every reader does. */
export type DocumentAcl = {
/** Who may do what: the whole list. */
grants: Array<ReadGrant>;
};

/** A passage and its position. */
export type SearchHit = {
/** cim_… */
id: string;
/** The kind. */
kind: 'chunk';
/** The text. */
content: string;
/** The media type. */
content_type?: string | undefined;
/** The headings above the passage (`heading_path`), and its position. */
raw_content: Record<string, unknown>;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** The type of the source. */
type: string;
/** The id of the document. */
document: string;
/** The knowledge source (`cso_…`). */
source: string;
/** The title. */
title?: string | undefined;
/** The address of the page or document. */
source_url?: string | undefined;
/** For a web page: the fragment of its address that leads to the heading, without `#`. */
fragment?: string | undefined;
/** The version of the document. Absent if its source keeps none. */
version?: number | undefined;
/** Its first line, from 1. */
start_line: number;
/** Its last line, from 1. */
end_line: number;
/** The byte of the text at which it starts, from 0. */
start_byte: number;
/** The byte of the text at which it ends, exclusive. */
end_byte: number;
/** Present if the text has page marks. */
start_page?: number | undefined;
/** Its last page, if the text has page marks. */
end_page?: number | undefined;
/** How well it matches: higher is better. Scores of different searches cannot be compared. */
score: number;
/** When it was created, in ISO 8601. */
created_at: string;
/** Where the words of the query are in `content`. */
highlights?: Array<{
/** The start of the match in `content`, in UTF-16 code units. */
start: number;
/** The end of the match (exclusive). */
end: number;
/** The start of the match in the document's text, in bytes. */
start_byte: number;
/** The byte of the text at which it ends, exclusive. */
end_byte: number;
}> | undefined;
/** The hit and its neighbours as one passage of the document. */
context?: {
/** The text. */
content: string;
/** Its first line, from 1. */
start_line: number;
/** Its last line, from 1. */
end_line: number;
/** The byte of the text at which it starts, from 0. */
start_byte: number;
/** The byte of the text at which it ends, exclusive. */
end_byte: number;
/** Present if the text has page marks. */
start_page?: number | undefined;
/** Its last page, if the text has page marks. */
end_page?: number | undefined;
} | undefined;
/** How the score came about, if the search asked for it. */
explain?: Record<string, unknown> | undefined;
};

/** The data of the event `put`. */
export type KvPut = {
/** The owner of the entry. */
user: string;
/** The key of the entry. */
key: string;
/** The value; null if it has over 64 KiB and has already been overwritten. */
value: string | null;
/** When the key was first written. */
created_at: string;
/** When the value was last written. */
updated_at: string;
/** When the entry expires. Absent if it does not. */
expires_at?: string | undefined;
/** The entity tag of the entry. */
etag: string;
};

/** The data of the events `delete` and `expire`. */
export type KvRemoval = {
/** The owner of the entry. */
user: string;
/** The key of the entry. */
key: string;
};

/** An entry in a list. Includes the user for developers and secret keys. */
export type KvListEntry = {
/** The owner of the entry. */
user: string;
/** The key of the entry. */
key: string;
/** The value. */
value: string;
/** When the key was first written. */
created_at: string;
/** When the value was last written. */
updated_at: string;
/** When the entry expires. Absent if it does not. */
expires_at?: string | undefined;
/** The email address of the user. */
user_email?: string | undefined;
/** The name of the user. */
user_name?: string | undefined;
};

/** A string stored under a key for one user. */
export type KvEntry = {
/** The owner of the entry. */
user: string;
/** The key of the entry. */
key: string;
/** The value. */
value: string;
/** When the key was first written. */
created_at: string;
/** When the value was last written. */
updated_at: string;
/** When the entry expires. Absent if it does not. */
expires_at?: string | undefined;
};

/** The result of one operation of a batch. */
export type KvBatchResult = {
/** What the operation did. */
op: string;
/** The key of the entry. */
key: string;
/** The entry after the operation. */
entry?: KvEntry | null | undefined;
/** The state of the entry, for `if_match`. */
etag?: string | undefined;
/** For a delete: whether the entry existed. */
deleted?: boolean | undefined;
};

/** Why the request was refused or failed, for programs (`code`) and people (`message`). */
export type Error = {
/** Why it failed. */
error: {
/** The group of errors that the code belongs to. */
type: string;
/** A stable code for programs; docs/errors.md explains each. Later releases may add codes. */
code: 'invalid_json' | 'invalid_cursor' | 'invalid_path' | 'user_required' | 'unauthenticated' | 'invalid_credentials' | 'expired_token' | 'app_scope_required' | 'forbidden' | 'not_found' | 'request_timeout' | 'method_not_allowed' | 'conflict' | 'claim_lost' | 'request_in_progress' | 'rewind_refused' | 'precondition_failed' | 'payload_too_large' | 'unsupported_media_type' | 'range_not_satisfiable' | 'locked' | 'headers_too_large' | 'invalid_parameters' | 'idempotency_key_reused' | 'already_exists' | 'file_too_large' | 'unsupported_content' | 'needs_browser' | 'extraction_failed' | 'not_an_image' | 'quota_exceeded' | 'token_budget_exceeded' | 'rate_limited' | 'checksum_mismatch' | 'internal_error' | 'not_implemented' | 'upstream_failed' | 'unavailable' | 'timeout' | (string & {});
/** What is wrong and what to do, for people. */
message: string;
/** The members of the request that are invalid. */
fields: Array<{
/** The name of the member; nested names are joined with dots. */
field: string;
/** What is wrong and what to do, for people. */
message: string;
}>;
/** More about the error, for programs. */
details: Record<string, unknown>;
};
};

/** A copy of the app with its own data, isolated from production. */
export type Sandbox = {
/** sbx_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The name. */
name: string;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A secret key acts for the whole app; a publishable key only names it. */
export type ApiKey = {
/** dak_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** The type. */
type: 'secret' | 'publishable';
/** The name. */
name?: string | undefined;
/** The first characters of the key. */
hint: string;
/** The key itself. Returned only in the response that creates it. */
full_key?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** Accurate to a few seconds. */
last_used_at?: string | undefined;
/** When it was revoked, in ISO 8601. */
revoked_at?: string | undefined;
/** The key stops working at this time. */
expires_at?: string | undefined;
/** Absent if the key may do everything. */
scopes?: Array<'read' | 'files' | 'extractions' | 'knowledge' | 'automations' | 'kv' | 'webhooks' | 'people' | 'app' | 'files:read' | 'extractions:read' | 'knowledge:read' | 'automations:read' | 'kv:read' | 'webhooks:read' | 'people:read' | 'app:read'> | undefined;
};

/** The usage and quotas of an app, in production or in one sandbox. */
export type Usage = {
/** Bytes of files and of learned search models. */
file_bytes: {
/** Current usage. */
used: number;
/** The limit, or null if there is none. */
limit: number | null;
};
/** Knowledge documents. */
documents: {
/** Current usage. */
used: number;
/** The limit, or null if there is none. */
limit: number | null;
};
/** Pages extracted or pulled today. */
pages: {
/** Current usage. */
used: number;
/** The limit, or null if there is none. */
limit: number | null;
/** When the day (UTC) ends and the count starts at 0 again. */
resets_at: string;
};
/** Tokens of the language model used today, including those reserved by requests in progress. */
tokens: {
/** Current usage. */
used: number;
/** The limit, or null if there is none. */
limit: number | null;
/** When the day (UTC) ends and the count starts at 0 again. */
resets_at: string;
};
/** Sandboxes, counted in production. */
sandboxes: {
/** Current usage. */
used: number;
/** The limit, or null if there is none. */
limit: number | null;
};
};

/** A background job that failed too often, or crashed even in a separate process, and is no longer retried. */
export type SetAsideJob = {
/** job_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** What the job does, such as `crawl`, `ingest` or `advance_run`. */
task: string;
/** The id of the run, extraction, ingestion, source or event that waits for the job. */
about?: string | undefined;
/** Why its last attempt failed. */
reason: string;
/** The number of attempts. */
attempts: number;
/** How often its process died while the job was active, or the job threw an uncaught exception. */
crashes: number;
/** When it was set aside, in ISO 8601. */
set_aside_at: string;
};

/** One change: who made it, what it was, and how it ended. */
export type AuditEntry = {
/** aud_… */
id: string;
/** When it happened, in ISO 8601. */
at: string;
/** Who made the request. */
actor: {
/** The kind. */
kind: 'user' | 'secret_key' | 'publishable_key' | 'developer' | 'inbound_url';
/** usr_…, dak_…, dva_…, or cso_… for the source of an inbound URL. */
id: string;
};
/** The kind of credential: user (an access token), personal_token, secret_key, publishable_key, developer_token, session (of the console), upload_link or inbound_url. */
credential: string;
/** The operation, such as createKey. */
action: string;
/** The HTTP method. */
method: string;
/** The path, with names in place of ids. */
route: string;
/** The id of the resource created, changed or named. */
resource?: string | undefined;
/** The status of the response; null while the request is in progress, or when the server stopped before responding. */
status: number | null;
/** The id of the request, as in `X-Request-Id`. */
request_id: string;
/** Where the request came from. */
address?: string | undefined;
/** The number of similar failed attempts within one minute that the entry represents. */
attempts?: number | undefined;
};

/** The use of one credential on one day. */
export type CredentialUse = {
/** usr_…, dak_… or tok_… */
credential: string;
/** The kind. */
kind: 'user' | 'secret_key' | 'publishable_key' | 'personal_token' | 'developer_token';
/** The day (UTC). */
day: string;
/** When it was first used, in ISO 8601. */
first_at: string;
/** When it was last used, in ISO 8601. */
last_at: string;
/** The number of requests. */
requests: number;
/** Requests among them that returned 401, 403 or 429; for a publishable key, failed sign-ins. */
refused: number;
};

/** A segment with everything that its signature covers. The guide "Verify" describes the bytes. */
export type LedgerHead = {
/** dap_… */
app: string;
/** sbx_… */
sandbox: string;
/** The number of the segment, from 1. */
segment: number;
/** The kind. */
kind: 'start' | 'audit' | 'runs' | 'retention' | 'deletion';
/** When it was sealed, in UTC with microseconds. */
sealed_at: string;
/** The number of records that it lists. */
records: number;
/** The time of the newest record. */
last_at: string | null;
/** The digest of its list of records, in hexadecimal. */
list_digest: string;
/** What retention or a deletion removes, as JSON text. */
detail: string | null;
/** The digest of the previous segment, in hexadecimal. */
previous: string;
/** The id of the key that signed it. */
key_id: string;
/** The public key, an Ed25519 key of 32 bytes, in hexadecimal. */
public_key: string;
/** Ed25519 over the fields above, in hexadecimal. */
signature: string;
/** The SHA-256 of the fields above, in hexadecimal. */
digest: string;
};

/** The result of one part of a verification. */
export type LedgerVerification = {
/** What is wrong; empty if nothing is. */
problems: Array<{
/** The kind. */
kind: 'changed' | 'removed' | 'inserted' | 'moved' | 'segment_changed' | 'segment_removed' | 'signature' | 'head' | 'truncated';
/** The ledger or the journal of a run. */
chain: string;
/** The id of the record; for a journal, the sequence. */
record?: string | undefined;
/** The number of the segment, from 1. */
segment?: number | undefined;
/** A text for people. */
message: string;
}>;
/** What was checked. */
counts: {
/** The number of segments. */
segments: number;
/** The number of records. */
records: number;
/** The number of runs. */
runs: number;
/** The number of journal entries. */
entries: number;
/** Records that retention or a deletion removed, as a signed segment states. */
removed: number;
/** Records that are not in a segment yet. */
unsealed: number;
};
/** Absent in the last part. */
next_cursor?: string | undefined;
};

/** A new credential of a user. It is not shown again. */
export type MintedToken = {
/** The access token, or the personal token. */
token: string;
/** The access token; the same as `token`. */
access_token?: string | undefined;
/** The refresh token (`rt_…`). Each can be used once. */
refresh_token?: string | undefined;
/** How the token is sent. */
token_type: 'Bearer';
/** The lifetime of the token in seconds. */
expires_in?: number | undefined;
user?: User | undefined;
/** The id. */
id?: string | undefined;
/** The name. */
name?: string | undefined;
/** When it expires, in ISO 8601. */
expires_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at?: string | undefined;
};

/** A long-lived token of a user, without its value. */
export type PersonalToken = {
/** tok_… */
id: string;
/** The name. */
name?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it expires, in ISO 8601. */
expires_at?: string | undefined;
/** Accurate to a few seconds. */
last_used_at?: string | undefined;
/** When it was revoked, in ISO 8601. */
revoked_at?: string | undefined;
};

/** An OpenID Connect issuer whose users are users of the app. */
export type IdentityIssuer = {
/** iss_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** The URL of the issuer, as its tokens name it. */
issuer: string;
/** The audience that tokens of the issuer must name. */
audience: string;
/** Where the public keys of the issuer are. Default: as its discovery document says. */
jwks_url?: string | undefined;
/** Whether an unknown subject becomes a new user. */
create_users: boolean;
/** Whether a subject is linked to the user with its verified address. */
link_by_email: boolean;
/** Which claims of a token set organisation, role and teams. */
claims: Record<string, unknown>;
/** How the web console signs in with this issuer. */
console?: {
/** The client id of the console at the issuer. */
client_id: string;
} | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A program that a user allowed to use the MCP endpoint for them, by OAuth. */
export type ConnectedAssistant = {
/** asg_… */
id: string;
/** dap_… */
app: string;
/** sbx_… */
sandbox?: string | undefined;
/** The user for whom it acts, usr_…. */
user: string;
/** The name that it gave itself. */
name: string;
/** The address of its metadata document, or a page that it named. */
url?: string | undefined;
/** The host, and the port, to which the browser returns. */
redirect_host: string;
/** What it may do, at the MCP endpoint alone. */
scopes: Array<string>;
/** When the user connected it. */
created_at: string;
/** When it last fetched a token. A token is valid for one hour. */
last_used_at: string;
/** When the connection ends unless it is used. Each use extends it by 30 days. */
expires_at: string;
};

/** An organisation of users, teams and agents. */
export type Org = {
/** org_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The name. */
name: string;
/** A name for URLs. */
slug?: string | undefined;
/** The kind. */
kind: 'company';
logo?: ImageSource | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** Users and agents who share what the team owns. */
export type Team = {
/** tem_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The name. */
name: string;
/** A text for people. */
description?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The membership status of the calling user. */
membership_status?: 'joined' | 'not_joined' | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** One user or agent in a team. */
export type Membership = {
/** tmb_… */
id: string;
/** The team (`tea_…`). */
team: {
/** The id. */
id: string;
};
/** Whether the member is a user or an agent. */
type: 'user' | 'agent';
/** The user (`usr_…`). */
user?: {
/** usr_… */
id?: string | undefined;
/** The app (`dap_…`) that it belongs to. */
app?: string | undefined;
/** The email address. */
email?: string | undefined;
/** The name. */
name?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The name of the organisation. */
org_name?: string | undefined;
/** The role in the organisation. */
org_role?: 'admin' | 'member' | 'viewer' | undefined;
/** Whether the user stands for a program instead of a person. */
is_system_user?: boolean | undefined;
/** The last token of an issuer left out the groups of the user, because there are too many. It grants none. */
groups_overage?: true | undefined;
/** A free key-value map, returned as stored. */
metadata?: Record<string, unknown> | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at?: string | undefined;
/** When it last changed, in ISO 8601. */
updated_at?: string | undefined;
} | undefined;
/** The agent that owns it, or that it is about. */
agent?: {
/** The id. */
id: string;
/** The name. */
name?: string | undefined;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | undefined;
} | undefined;
/** The name. */
name?: string | undefined;
/** The role. */
role: 'owner' | 'admin' | 'member';
/** When the member joined, in ISO 8601. */
joined_at: string;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** Users to whom documents can be restricted. Groups contain no groups. */
export type Group = {
/** grp_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group. */
namespace: string;
/** The name of the group in its namespace, which never changes. */
external_id: string;
/** The name. */
name?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A user in a group. */
export type GroupMember = {
/** The user (`usr_…`). */
user: {
/** The id. */
id: string;
/** The email address. */
email?: string | undefined;
/** The name. */
name?: string | undefined;
};
/** When it was created, in ISO 8601. */
created_at: string;
};

/** What an erasure deleted, what remains where, and who received it, signed with the key of the audit log. */
export type ErasureCertificate = {
/** What is signed. */
statement: {
/** ers_… */
erasure: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string;
/** usr_… */
user?: string | undefined;
/** cdo_… */
document?: string | undefined;
/** cso_… */
source?: string | undefined;
/** When the erasure was ordered. */
requested_at: string;
/** When it ended, in ISO 8601. */
completed_at: string;
/** What the erasure covers, and what it does not. */
covers: string;
/** How many of each kind were deleted, such as documents, chunks, postings, vectors, files and runs. */
removed: Record<string, number>;
/** What the server does not delete. */
remains: Array<{
/** What remains, such as `audit_entries` or `backups`. */
what: string;
/** In which part of the installation. */
where: string;
/** The last day on which it may be there. Absent: the server sets no such day. */
until?: string | undefined;
/** What exactly, and how it goes away. */
note: string;
}>;
/** Who outside received something of it. */
receivers: Array<{
/** `origin`: where the source read its documents, which still has them. */
kind: 'model' | 'embedder' | 'webhook' | 'traces' | 'origin';
/** A model, or the id of a webhook or a source. */
name: string;
/** Where it was sent. */
host?: string | undefined;
/** Calls or deliveries. */
messages?: number | undefined;
/** When it was last used, in ISO 8601. */
last_at?: string | undefined;
/** False if it received data of the app in this time, and may have received this. */
certain: boolean;
}>;
};
/** The id of the key that signed it. */
key_id: string;
/** The public key, an Ed25519 key of 32 bytes, in hexadecimal. */
public_key: string;
/** Ed25519 over the statement, in hexadecimal. The guide "Erasure" describes the bytes. */
signature: string;
};

/** An agent, owned by a user, a team or an organisation. */
export type Agent = {
/** agt_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The name. */
name: string;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** Who the agent is, as a prompt for a language model. */
identity?: string | undefined;
/** The name of the language model that the agent prefers. */
default_model?: string | undefined;
/** The email address. */
email?: string | undefined;
/** The telephone number. */
phone_number?: string | undefined;
/** A text of your own that says where the agent comes from. */
originator?: string | undefined;
profile_picture?: ImageSource | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A conversation whose messages sources can ingest. */
export type Thread = {
/** thr_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The title. */
title?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A connection of an agent, and the source that it fills. */
export type Installation = {
/** cin_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The agent that owns it, or that it is about. */
agent: string;
/** The kind. */
kind: 'webhook/inbound' | 'thread/messages';
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** The secret URL that accepts documents. */
inbound_url?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A URL for uploading one file without a credential. */
export type UploadLink = {
/** The id that the file will have. */
file: string;
/** The method to send the bytes with. */
method: 'PUT';
/** Accepts the bytes once, without any other credential. */
url: string;
/** When it expires, in ISO 8601. */
expires_at: string;
};

/** A resumable upload. */
export type Upload = {
/** upl_… */
id: string;
/** The id of the file, which exists once the upload is finished. */
file: string;
/** The state. */
state: 'uploading' | 'finished';
/** The name of the file. */
filename: string;
/** The media type. */
content_type: string;
/** The number of bytes stored. */
offset: number;
/** The size of the whole file in bytes. */
length: number;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** The user who created it. */
user?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When an unfinished upload is deleted. */
expires_at: string;
};

/** A versioned text at a virtual path. */
export type ConfigEntry = {
/** cfg_… */
id: string;
/** The path of the entry. */
virtual_path: string;
/** The media type. */
content_type: string;
/** The text. */
content?: string | undefined;
/** The version number, from 1. */
version: number;
/** The number of the newest version. */
current_version: {
/** cfv_… */
id: string;
/** The number of the version, from 1. */
version_number: number;
/** SHA-256 in hex. */
content_hash: string;
/** When it was created, in ISO 8601. */
created_at: string;
};
/** The file (`fil_…`). */
file: string;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A job that turns a document, a page or a site into Markdown. */
export type Extraction = {
/** ext_… */
id: string;
/** The kind. */
kind: 'document' | 'link' | 'site';
/** The state. */
state: 'running' | 'done' | 'failed';
/** Where the outputs are written. */
destination: {
/** The kind. */
kind: 'config' | 'storage';
/** The virtual path under which outputs are written. */
path_prefix?: string | undefined;
};
/** The file (`fil_…`). */
file?: string | undefined;
/** The URL. */
url?: string | undefined;
/** `link` for one page, `site` for a whole site. */
mode?: 'link' | 'site' | undefined;
/** How many pages the crawl reads at most. */
max_pages?: number | undefined;
/** An option of the site. Omitted in lists. */
include_paths?: Array<string> | undefined;
/** An option of the site. Omitted in lists. */
exclude_paths?: Array<string> | undefined;
/** How many links away from the first page the crawl goes. */
max_depth?: number | undefined;
/** Whether the crawl also reads subdomains of the host. */
allow_subdomains?: boolean | undefined;
/** Whether the crawl ignores robots.txt. */
ignore_robots?: boolean | undefined;
/** Whether the crawl also reads pages of the sitemap, or only those. */
sitemap?: 'include' | 'skip' | 'only' | undefined;
/** The JSON Schema of the data. Omitted in lists. */
schema?: Record<string, unknown> | undefined;
/** Omitted in lists. */
instructions?: string | undefined;
/** The model or alias that extracts the data. Omitted in lists, and for the default. */
model?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The kind of failure. */
failure_reason?: 'fetch_failed' | 'unsupported_content' | 'extraction_failed' | 'timeout' | 'internal_error' | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** The number of finished outputs. */
output_count: number;
/** The total size in bytes of the outputs’ text when it was written. */
byte_count: number;
/** The texts, in order. Omitted in lists. */
outputs?: Array<ExtractionOutput> | undefined;
/** The first hundred pages of a site that were skipped, with the reason: robots, path, trap, generated, duplicate or redirected_away. */
left_out?: Array<{
/** The URL. */
url: string;
/** The reason. */
reason: string;
}> | undefined;
/** How far it is. */
progress: {
/** How many pages were found. */
discovered: number;
/** How many are done. */
done: number;
/** How many failed. */
failed: number;
};
/** The number of pages that are read and become outputs once enough pages show what the site repeats. Omitted when none waits. */
waiting_count?: number | undefined;
/** Present if the extraction has a schema. */
data_progress?: {
/** The number of outputs that wait for their data. */
pending: number;
/** How many are done. */
done: number;
/** How many failed. */
failed: number;
/** The number of pieces into which texts were divided so far. */
pieces: number;
/** How many pieces are done. */
pieces_done: number;
} | undefined;
/** What the language model used. Present if the extraction has a schema. */
usage?: {
/** A request in progress counts with the maximum that it may use. */
total_tokens: number;
/** The number of requests. */
requests: number;
} | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** The data of an event of a watch. */
export type KvChange = KvPut | KvRemoval | StreamPosition;

/** A URL that receives events. */
export type Webhook = {
/** whk_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string | null;
/** The URL. */
url: string;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** Names of events, or `*` for all. */
events: Array<string>;
/** The automations for whose runs a function is woken, instead of events. */
automations?: Array<string> | undefined;
/** The status. */
status: 'active' | 'paused';
/** Why it was paused, if the server paused it. */
paused_reason?: string | undefined;
/** The time of the first failed attempt since the last success. With `automations`, a success is that the function wrote something. */
failing_since?: string | undefined;
/** whsec_…: returned only in the response that creates or rotates it. */
secret?: string | undefined;
/** Until this time, deliveries are also signed with the previous secret. */
previous_secret_until?: string | undefined;
/** Names in `events` that nothing has emitted so far, with the nearest name that is. Present only in the response that creates or changes the webhook. */
warnings?: Array<{
/** The member of the request, such as `events.0`. */
field: string;
/** What looks like a mistake, for people. */
message: string;
}> | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** One event for one webhook, with its attempts. */
export type WebhookDelivery = {
/** whd_… */
id: string;
/** The id of the webhook. */
webhook: string;
/** evt_…, sent as `webhook-id`. */
event: string;
/** The name of the event. */
type: string;
/** The number of the event in its app or sandbox, from 1. */
sequence: number;
/** The state. */
state: 'pending' | 'delivered' | 'failed';
/** The number of attempts. */
attempts: number;
/** The latest 20 attempts, oldest first. */
log: Array<{
/** When it happened, in ISO 8601. */
at: string;
/** The duration in milliseconds. */
duration_ms: number;
/** The status of the response. */
status?: number | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
}>;
/** When the next attempt is due, in ISO 8601. */
next_attempt_at?: string | undefined;
/** When the receiver accepted it, in ISO 8601. */
delivered_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A language model that an app brings. */
export type Model = {
/** mdl_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string | null;
/** The name by which requests choose it. */
name: string;
/** What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`. */
kind?: 'embedding' | 'rerank' | undefined;
/** The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking. */
provider: 'openai' | 'anthropic' | 'google' | 'cohere';
/** The model, as its provider names it. */
model: string;
/** The base URL of its provider. */
url: string;
/** Whether a key is stored for this host. */
has_key: boolean;
/** How many tokens the messages and the text may have together. */
context_tokens?: number | undefined;
/** How many tokens the model can write in one response. */
output_tokens?: number | undefined;
/** How long the model may write nothing before it is given up. */
timeout_seconds?: number | undefined;
/** How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused. */
dimensions?: number | undefined;
/** Of the kind `embedding`: how many texts one request may have. Default: 64. */
batch_texts?: number | undefined;
/** Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces. */
query_prefix?: string | undefined;
/** Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again. */
passage_prefix?: string | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default). */
query_input_type?: string | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix. */
passage_input_type?: string | undefined;
/** Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1. */
fusion_weight?: number | undefined;
/** What the model reads. */
modalities: Array<'text' | 'image' | 'file'>;
/** What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens. */
prices?: {
/** What a million tokens of messages cost. */
input: number;
/** What a million written tokens cost. */
output: number;
} | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A name for an ordered list of models. */
export type ModelAlias = {
/** mal_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string | null;
/** The name by which requests choose it. */
name: string;
/** Names of models, in the order in which they are tried. Aliases do not nest. */
models: Array<string>;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** One call of a language model. */
export type ModelCall = {
/** mcl_… */
id: string;
/** The name of the model; `default` is the one that the operator set. */
model: string;
/** The alias that chose the model. */
alias?: string | undefined;
/** What it was for, if not to write text. */
operation?: 'embeddings' | 'rerank' | undefined;
/** The provider of the model. */
provider: string;
/** The model, as its provider names it. */
provider_model: string;
/** How it ended. `abandoned`: its process was killed, and what it reserved counts. */
status: 'running' | 'succeeded' | 'failed' | 'abandoned';
/** Why it failed. */
error_code?: string | undefined;
/** Why the model stopped, in its own words. */
finish_reason?: string | undefined;
/** Tokens of the messages. */
prompt_tokens?: number | undefined;
/** Tokens that the model wrote. */
completion_tokens?: number | undefined;
/** Whether the tokens are estimated: the provider reported none. */
estimated: boolean;
/** Tokens that were reserved before the call. */
reserved_tokens: number;
/** The prices at which the call was made. */
prices?: {
/** What a million tokens of messages cost. */
input: number;
/** What a million written tokens cost. */
output: number;
} | undefined;
/** What it cost, in millionths of a currency unit. Absent for a model without prices. */
cost?: number | undefined;
/** How long it took. */
latency_ms?: number | undefined;
/** When the first text arrived. */
first_token_ms?: number | undefined;
/** The user (`usr_…`) for whom it was made. */
user?: string | undefined;
/** The agent (`agt_…`) for which it was made. */
agent?: string | undefined;
/** The automation (`aut_…`). */
automation?: string | undefined;
/** The run (`atr_…`). */
run?: string | undefined;
/** The id of the node. */
node?: string | undefined;
/** The extraction (`ext_…`). */
extraction?: string | undefined;
/** The messages, if the server keeps contents. */
prompt?: string | undefined;
/** The text, if the server keeps contents. */
output?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it ended, in ISO 8601. */
ended_at?: string | undefined;
};

/** What happened when a model was tried. */
export type ModelTest = {
/** Whether the model did what it is for. */
ok: boolean;
/** `no_key`: none is stored for the URL. `key_refused`: 401 or 403. `not_found`: 404, so the URL or the name of the model is wrong. `unreachable`: no connection. `timeout`: nothing within 20 seconds. `failed`: anything else, such as vectors of another length. */
problem?: 'no_key' | 'key_refused' | 'not_found' | 'unreachable' | 'timeout' | 'failed' | undefined;
/** What happened, in words. */
message?: string | undefined;
/** How long the call took. */
latency_ms: number;
/** When the first text arrived. */
first_token_ms?: number | undefined;
};

/** A model or an alias that requests of the app may name. */
export type AvailableModel = {
/** The name by which requests choose it. */
name: string;
/** Whether it is one model or an ordered list. */
kind: 'model' | 'alias';
/** Whose it is. A name of the app hides the same one of the operator. */
from: 'app' | 'operator';
/** Whether it is used if a request names no model. */
is_default: boolean;
/** Whether it has the key that it needs. Of an alias, whether one of its models has. */
usable: boolean;
/** What it is for, if not to write text. */
purpose?: 'embedding' | 'rerank' | undefined;
/** The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking. */
provider?: 'openai' | 'anthropic' | 'google' | 'cohere' | undefined;
/** How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused. */
dimensions?: number | undefined;
/** The model, as its provider names it. */
model?: string | undefined;
/** The names of the models of an alias. */
models?: Array<string> | undefined;
/** How many tokens the messages and the text may have. */
context_tokens?: number | undefined;
/** What the model reads. */
modalities?: Array<string> | undefined;
/** What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens. */
prices?: {
/** What a million tokens of messages cost. */
input: number;
/** What a million written tokens cost. */
output: number;
} | undefined;
};

/** A limit for the tokens or the cost of language models. */
export type ModelBudget = {
/** mbg_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string | null;
/** Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production. */
subject: 'app' | 'sandbox' | 'user' | 'agent' | 'automation' | 'run';
/** The one that the budget is for. Absent: each user, agent, run … has the budget for itself. */
subject_id?: string | undefined;
/** When the count starts at 0 again: each day or month (UTC), or never. */
period: 'day' | 'month' | 'total';
/** Tokens beyond which calls are refused. */
tokens?: number | undefined;
/** Money beyond which calls are refused, in millionths of a currency unit. */
cost?: number | undefined;
/** Tokens beyond which the event `model_budget.reached` is emitted. */
soft_tokens?: number | undefined;
/** Money beyond which the event is emitted, in millionths of a currency unit. */
soft_cost?: number | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** How much of a budget one of its subjects has used in this period. */
export type ModelBudgetUse = {
/** Who used it; null for the app. */
subject_id: string | null;
/** Tokens used, with those reserved by calls in progress. */
tokens: number;
/** Money used, in millionths of a currency unit. */
cost: number;
/** When the count starts at 0 again. */
resets_at: string | null;
};

/** What the calls of one group used. */
export type ModelUsage = {
/** The id, the name of the model, or the day (UTC); null for calls of none. */
group: string | null;
/** The number of calls. */
calls: number;
/** Tokens of messages. */
prompt_tokens: number;
/** Tokens that models wrote. */
completion_tokens: number;
/** What they cost, in millionths of a currency unit. */
cost: number;
};

/** Where knowledge comes from: documents, a page, a site, a file. */
export type KnowledgeSource = {
/** cso_… */
id: string;
/** The type. */
type: string;
/** The state. */
state: 'active' | 'paused';
/** The agent that owns it, or that it is about. */
agent: string | null;
/** The installation (`cin_…`) that created the source; null if it was created directly. */
context_installation: string | null;
/** When it was created, in ISO 8601. */
created_at: string | null;
/** When it last changed, in ISO 8601. */
updated_at: string | null;
/** A name for programs, unique in the app or sandbox. */
lookup_key: string | null;
/** What search has learned from the source; null until it has learned something. */
learned_model: {
/** `over_quota`: the latest model would exceed the app’s quota of bytes and is not stored. Until there is room, search uses the previous model, or only text and vectors. */
status: 'ready' | 'over_quota';
/** The size in bytes of the model in use; 0 without one. It counts towards `file_bytes`. */
bytes: number;
/** The size in bytes of the model that was not stored; null if `ready`, and for users and agents if some documents of the source are restricted. */
bytes_needed: number | null;
/** When the model in use was stored. */
trained_at: string | null;
} | null;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown> | null;
/** The organisation (`org_…`). */
org: string | null;
/** The source that it was derived from; null for others. */
parent_source: string | null;
/** The data that comes with it. */
payload: Record<string, unknown> | null;
/** The sandbox (`sbx_…`); absent in production. */
sandbox: string | null;
/** The team (`tea_…`). */
team: string | null;
/** The thread (`thr_…`). */
thread: string | null;
/** The user (`usr_…`). */
user: string | null;
/** Whether pulls sign in with stored credentials. */
has_credentials: boolean;
/** Deletions that wait for a person, because the listing was empty or they are more than half of the source. A pull with `confirm_deletions` carries them out. Not shown to users and agents if some documents of the source are restricted. */
held_deletions: {
/** How many documents the last listing did not contain. */
documents: number;
/** How many there were. */
of: number;
/** When the pull found this. */
since: string;
} | null;
/** The model that computes its vectors. Absent: the installation’s embedder does. */
embedder?: string | undefined;
/** For how many days old versions of documents are kept. Absent: none are kept. */
version_retention_days?: number | undefined;
/** When the source began to keep versions. What was before is not known. */
versions_from?: string | undefined;
/** Members of the payload that are not used and resemble members that are. Present only in the response that creates or changes the source. */
warnings?: Array<{
/** The member of the request, such as `payload.max_pagess`. */
field: string;
/** What looks like a mistake, for people. */
message: string;
}> | undefined;
/** Only in lists with `include=statistics`. */
statistics?: {
/** Number of documents. */
documents: number;
/** The newest ingestion; null if there was none. */
last_ingestion: {
/** The status. */
status: 'pending' | 'running' | 'awaiting_callback' | 'succeeded' | 'failed';
/** When it was created, in ISO 8601. */
created_at: string;
} | null;
} | undefined;
};

/** A job that adds content to a source. */
export type KnowledgeIngestion = {
/** cig_… */
id: string;
/** The knowledge source (`cso_…`). */
source: string;
/** The status. */
status: 'pending' | 'running' | 'awaiting_callback' | 'succeeded' | 'failed';
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** Why it failed. */
error?: Record<string, unknown> | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** What the ingestion did, in numbers. */
stats: Record<string, unknown>;
/** When it started, in ISO 8601. */
started_at?: string | undefined;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** A document of a source. */
export type KnowledgeDocument = {
/** cdo_… */
id: string;
/** The knowledge source (`cso_…`). */
source: string;
/** The title. */
title?: string | undefined;
/** The file (`fil_…`). */
file?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** The media type. */
content_type?: string | undefined;
/** The SHA-256 of the text, in hexadecimal. */
content_hash: string;
/** The number of lines of the whole text. */
total_lines: number;
/** The size of the whole text in bytes. */
total_size: number;
/** Number of chunks, the parts that searches find. */
total_chunks: number;
/** The address of the page or document. */
source_url?: string | undefined;
acl?: DocumentAcl | undefined;
/** Its id where it comes from, given by a connector or a pull. */
external_id?: string | undefined;
/** The version of the document. Absent if its source keeps none. */
version?: number | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** Text of a document, or a slice of it. */
export type KnowledgeDocumentContent = {
/** The id. */
id: string;
/** The text, or the slice of it that was asked for. */
content: string;
/** The number of lines of the whole text. */
total_lines: number;
/** The size of the whole text in bytes. */
total_size: number;
/** The title. */
title?: string | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** What `offset` and `limit` count. */
unit?: string | undefined;
/** The number of units that were skipped. */
offset?: number | undefined;
/** The number of units that were asked for. */
limit?: number | undefined;
/** Its first line, from 1. */
start_line?: number | undefined;
/** Its last line, from 1. */
end_line?: number | undefined;
/** The byte of the text at which it starts, from 0. */
start_byte?: number | undefined;
/** The byte of the text at which it ends, exclusive. */
end_byte?: number | undefined;
};

/** A part of a document that searches return. */
export type KnowledgeDocumentChunk = {
/** cim_… */
id: string;
/** The text. */
content: string;
/** The headings above it, outermost first. */
heading_path: Array<string>;
/** For a web page: the fragment of its address that leads to the heading, without `#`. */
fragment?: string | undefined;
/** Its first line, from 1. */
start_line: number;
/** The last line, counted from 1 (inclusive). */
end_line: number;
/** The byte of the text at which it starts, from 0. */
start_byte: number;
/** The end in bytes, counted from 0 (exclusive). */
end_byte: number;
};

/** One run of a connector, a program that fills a source. */
export type KnowledgeSync = {
/** csy_… */
id: string;
/** cso_… */
source: string;
/** `link` for one page, `site` for a whole site. */
mode: 'full' | 'changes';
/** `expired`: its connector has been silent for too long, so the next one resumes or replaces it. `completing`: what was sent is still being indexed. */
status: 'active' | 'expired' | 'completing' | 'succeeded' | 'aborted';
/** Every batch names it, and the end of a sync that was resumed. Resuming the sync changes it. */
fence: number;
/** Of the last batch; at the start of a sync of changes, of the one before. Null: begin at the beginning. */
cursor: string | null;
/** The number of the next batch. */
next_batch: number;
/** The number of upserts received. */
documents: number;
/** The number of upserts and deletes that are not in the index yet. */
pending: number;
/** What became of them: `written`, `unchanged`, `outdated` (a lower `order`), `deleted`, `failed`, and up to 100 `errors`. */
stats: Record<string, unknown>;
/** When it expires, in ISO 8601. */
expires_at: string;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
/** When it ended, in ISO 8601. */
completed_at: string | null;
};

/** The embedder of a source, and how far its vectors are. */
export type KnowledgeEmbedding = {
/** The embedder that the source names; null for the installation’s. */
embedder: string | null;
/** The embedder whose vectors searches use; null for the installation’s. */
serving: string | null;
/** `running`: documents wait for their vectors. `failed`: the last try failed, and another one follows; searches use the vectors that there are. */
status: 'ready' | 'running' | 'failed';
/** How many documents the source has. */
documents: number;
/** How many of them have vectors of `embedder`. */
embedded: number;
/** Tokens that vectors have used since `embedder` was named; 0 without one. */
tokens: number;
/** What they cost, in millionths of a currency unit. */
cost: number;
/** Why the last try failed. */
error?: string | undefined;
/** When the next try is due. */
retry_at?: string | undefined;
/** When `embedder` was named. */
started_at?: string | undefined;
/** When searches began to use its vectors. */
completed_at?: string | undefined;
/** What it would take to name another embedder. Only with `embedder` in the query. */
estimate?: {
/** The embedder of the estimate. */
embedder: string;
/** How many documents would be embedded. */
documents: number;
/** Tokens that they are likely to need, at four bytes a token. */
tokens: number;
/** What they are likely to cost, in millionths of a currency unit; null for a model without prices. */
cost: number | null;
} | undefined;
};

/** A version with its text. */
export type KnowledgeDocumentVersionContent = {
/** cdo_… */
document: string;
/** cso_… */
source: string;
/** Its number. The first version of a document is 1. */
version: number;
/** Whether the document is so now. */
current: boolean;
/** The title then. */
title?: string | undefined;
/** The metadata then. */
metadata: Record<string, unknown>;
/** The media type of what it was read from. */
content_type?: string | undefined;
/** The SHA-256 of its text, in hexadecimal. */
content_hash: string;
/** The lines of its text. */
total_lines: number;
/** The bytes of its text. */
total_size: number;
/** Where it came from. */
source_url?: string | undefined;
/** Its id where it came from. */
external_id?: string | undefined;
/** When it became the current version. */
created_at: string;
/** When the next version replaced it. */
replaced_at?: string | undefined;
/** When the document was deleted, if that ended this version. */
deleted_at?: string | undefined;
/** Its text, or a slice of it. */
content: string;
/** The unit of the slice. */
unit?: string | undefined;
/** The offset that was asked for. */
offset?: number | undefined;
/** The limit that was asked for. */
limit?: number | undefined;
/** Its first line. */
start_line?: number | undefined;
/** Its last line. */
end_line?: number | undefined;
/** Where it begins, in bytes. */
start_byte?: number | undefined;
/** Where it ends; exclusive. */
end_byte?: number | undefined;
};

/** How a version of a document differs from another one. */
export type KnowledgeDocumentComparison = {
/** cdo_… */
document: string;
/** The number of the version that was compared with. */
base: number;
/** The number of the version. */
version: number;
/** Only if they differ. */
title?: {
/** The title of the base. */
before?: string | undefined;
/** The title of the version. */
after?: string | undefined;
} | undefined;
/** The members of the metadata that differ. */
metadata: Array<string>;
/** How many lines only the base has. */
removed_lines: number;
/** How many lines only the version has. */
added_lines: number;
/** What differs, in the order of the text. */
hunks: Array<{
/** The first of these lines in the base, from 1. */
old_start: number;
/** The first of these lines in the version. */
new_start: number;
/** Lines that differ, with up to three equal ones around them. */
lines: Array<{
/** Which of the two has the line. */
type: 'same' | 'removed' | 'added';
/** The line, without its line break. */
text: string;
}>;
}>;
/** Whether there is more than fits: at most 5,000 lines and 524,288 characters. */
truncated: boolean;
};

/** What restoring a source to a time would change. */
export type KnowledgeRestorePlan = {
/** The time. */
at: string;
/** How many documents the source has now. */
documents: number;
/** How many would get an earlier version back. */
changed: number;
/** How many that were deleted since would come back. */
created: number;
/** How many that did not exist then would be deleted. */
deleted: number;
/** How many would stay as they are, because their version of that time is no longer kept. */
unknown: number;
};

/** Defines what runs, when, as whom and in which steps. */
export type Automation = {
/** aut_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The name. */
name: string;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** The type. */
type: 'trigger' | 'scheduled' | 'invoked';
/** The status. */
status: 'draft' | 'running' | 'paused';
/** The name of the event that starts a run. Only for type trigger. */
trigger?: string | undefined;
/** A JSONata expression over the payload. The event starts a run only if it is true. */
filter?: string | undefined;
/** A five-field cron expression. Only for type scheduled. */
schedule?: string | undefined;
/** The time zone of the schedule, such as `Europe/Berlin`. Default UTC. */
timezone: string;
/** The WorkflowGraph; the WorkflowProgram whose steps your code executes; or null when an external worker reports on whole runs. */
workflow: Record<string, unknown> | null;
/** The JSON Schema that the payload of an invocation must match, or null. */
input_schema: Record<string, unknown> | null;
/** Which callers may invoke it: end users, secret keys, or any. */
invoke_auth: 'any' | 'secret_key' | 'user';
/** The user (`usr_…`) as whom runs act. */
run_as_user?: string | undefined;
/** The agent (`agt_…`) as which runs act. */
run_as_agent?: string | undefined;
/** Why it was paused, if the server paused it. */
paused_reason?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** How many runs may be active at the same time. */
max_concurrent_runs?: number | undefined;
/** How many runs may wait for their turn. Beyond it, invocations are 429. */
max_pending_runs?: number | undefined;
/** Limits active runs with the same value in their payload. Only with a workflow. */
concurrency?: {
/** The path of a member of the payload, such as `customer.id`. */
key: string;
/** How many runs with the same value may be active at the same time. */
limit: number;
} | undefined;
/** Limits how many runs start in any time of this length. The others wait. Only with a workflow. */
rate?: {
/** How many runs may start in this time. */
limit: number;
/** The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most. */
per: string;
/** The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one. */
key?: string | undefined;
} | undefined;
/** How many seconds a run may take. */
timeout_seconds?: number | undefined;
/** How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever. */
retention?: {
/** Days after their end for which completed and cancelled runs are kept. Default: no limit. */
days?: number | undefined;
/** How many completed and cancelled runs of each automation are kept, the newest. Default: no limit. */
runs?: number | undefined;
/** Days for which failed runs are kept. Default: `days`. */
failed_days?: number | undefined;
/** How many failed runs of each automation are kept, the newest. Default: `runs`. */
failed_runs?: number | undefined;
/** Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false. */
files?: boolean | undefined;
} | undefined;
/** When the next scheduled run starts, in ISO 8601. */
next_run_at?: string | undefined;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
};

/** The current or an earlier graph of the automation. A run keeps the version it started with. */
export type WorkflowVersion = {
/** The number of the version, from 1. */
version: number;
/** The WorkflowGraph; the WorkflowProgram whose steps your code executes; or null when an external worker reports on whole runs. */
workflow: Record<string, unknown> | null;
/** The scopes of the key that wrote it. Without them, it has full rights. */
scopes?: Array<string> | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
};

/** An automation as shown to callers who may invoke it. */
export type InvocableAutomation = {
/** aut_… */
id: string;
/** The name. */
name: string;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** The JSON Schema that the payload of an invocation must match, or null. */
input_schema: Record<string, unknown> | null;
};

/** Runs, newest first. `after_cursor` points after the last run returned. */
export type AutomationRunPage = {
/** The entries. */
data: Array<AutomationRunSummary>;
/** Whether there are further entries. */
has_more: boolean;
/** The position after the last entry returned. Pass it as `after_cursor` to get what follows. */
after_cursor?: string | undefined;
};

/** Entries in order. `resume_cursor` points after the last entry returned. */
export type RunJournalPage = {
/** The journal; null if the run has none. */
journal: WorkflowJournal | null;
/** The entries. */
data: Array<WorkflowJournalEntry>;
/** The position after the last entry returned. Pass it as `after_cursor` to get what follows. */
after_cursor?: string | undefined;
/** Whether there are further entries. */
has_more: boolean;
/** The position after the last entry returned, also on the last page. */
resume_cursor?: string | undefined;
};

/** The data of an event of the stream of outputs. */
export type AutomationRunOutput = GenerationPart | StreamPosition;

/** A run that an external worker has claimed. */
export type ClaimedAutomationRun = {
/** atr_… */
id: string;
/** The app (`dap_…`) that it belongs to. */
app: string;
/** The automation (`aut_…`). */
automation: string;
/** The type. */
type: 'trigger' | 'scheduled' | 'invoked';
/** The status. */
status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
/** The data that comes with it. */
payload?: unknown | undefined;
/** Values that expressions of the run can read as `$participants`. */
participants?: Record<string, string> | undefined;
/** What the run returned. */
result?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
/** The id of the node. */
node_id?: string | undefined;
} | undefined;
/** The id (`evt_…`) of the event that started it. */
event_id?: string | undefined;
/** The user or agent; absent for schedules, events and keys. */
invoked_by?: string | undefined;
/** The run (`atr_…`) that it repeats. */
retried_from?: string | undefined;
/** The run (`atr_…`) that started it. */
parent_run?: string | undefined;
/** The version of the graph that the run started with; absent without one. */
workflow_version?: number | undefined;
/** What the run waits for; absent if it does not wait. */
waiting_for?: {
/** People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far. */
kind: 'approval' | 'signal' | 'child' | 'time' | 'retry' | 'worker';
/** The node that waits. */
node_id?: string | undefined;
/** The approval (`apr_…`). */
approval?: string | undefined;
/** The name of the signal. */
name?: string | undefined;
/** The child: a run, an extraction or an ingestion. */
id?: string | undefined;
/** When the wait ends at the latest. */
until?: string | undefined;
/** The number of other nodes that also wait. */
others?: number | undefined;
/** Why the last worker could not continue the run. */
workflow_changed?: {
/** The step that the journal has. */
expected: unknown;
/** What the code asked for instead. */
found: unknown;
} | undefined;
} | undefined;
/** Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it. */
pending_for?: {
/** The limit of the automation that delays the run. */
limit: 'max_concurrent_runs' | 'concurrency' | 'rate';
/** When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further. */
until?: string | undefined;
/** The number of runs that start before it, counted up to 10,000. */
ahead: number;
} | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The sandbox (`sbx_…`); absent in production. */
sandbox?: string | undefined;
/** When the claim of the worker expires, in ISO 8601. */
lease_until?: string | undefined;
/** When it started, in ISO 8601. */
started_at?: string | undefined;
/** When it ended, in ISO 8601. */
completed_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it last changed, in ISO 8601. */
updated_at: string;
/** Send it with each report, so that a report after the lease has expired is refused. */
claim: string;
};

/** A run that the worker now executes, and what has happened in it so far. */
export type ClaimedWork = {
run: AutomationRun;
/** The claim, `clm_…`. Another claim on the run makes it invalid. */
claim: string;
/** When the claim expires without a renewal. */
lease_until: string;
/** The last entry of the journal: `after_sequence` of the first batch. */
sequence: number;
/** The beginning of the journal, with the secrets that redaction hides from other readers. */
journal: Array<WorkflowJournalEntry>;
/** Continues the journal; absent if this is its end. */
after_cursor?: string | undefined;
};

/** A part of the journal of a claimed run. */
export type WorkJournalPage = {
/** The next entries. */
journal: Array<WorkflowJournalEntry>;
/** Continues the journal; absent if this is its end. */
after_cursor?: string | undefined;
};

/** The state of a run after a batch of entries. */
export type AppendedWork = {
/** The last entry of the journal: `after_sequence` of the next batch. */
sequence: number;
/** The run was cancelled or ended otherwise: nothing was written. */
cancel_requested: boolean;
/** When the claim expires; absent if it was released. */
lease_until?: string | undefined;
/** The command of each step that the batch started: the idempotency key of all its attempts. */
command_ids: Record<string, string>;
/** What the server has added since `after_sequence`. */
entries: Array<WorkflowJournalEntry>;
};

/** A part of the journal of the run that a function was woken for. */
export type ClaimedJournal = {
/** The run. */
run: string;
/** The last entry of the journal: `after_sequence` of the first batch. */
sequence: number;
/** When the claim expires without a request with entries. */
lease_until: string;
/** The next entries, with the secrets that redaction hides from other readers. */
journal: Array<WorkflowJournalEntry>;
/** Continues the journal; absent if this is its end. */
after_cursor?: string | undefined;
};

/** A question of a run to people. Those who answer see the question, not the run. */
export type Approval = {
/** apr_… */
id: string;
/** `cancelled`: its run ended, or its node no longer waits. */
status: 'waiting' | 'answered' | 'expired' | 'cancelled';
/** What is asked. */
question: string;
/** The JSON Schema that `data` of the answer must match. */
form: Record<string, unknown>;
/** When it expires; absent without a deadline. */
expires_at?: string | undefined;
/** When it was created, in ISO 8601. */
created_at: string;
/** When it was answered, expired or was cancelled. */
closed_at?: string | undefined;
/** The user (`usr_…`), the developer, `secret key`, or the holder of a link and to whom it was sent. */
answered_by?: string | undefined;
/** The app. This and the members below are only for secret keys and developers. */
app?: string | undefined;
/** The sandbox, if it is not in production. */
sandbox?: string | undefined;
/** The run that waits (`atr_…`). */
run?: string | undefined;
/** The automation of the run (`aut_…`). */
automation?: string | undefined;
/** The node that asks. */
node_id?: string | undefined;
/** The `data` of the answer. */
answer?: unknown | undefined;
/** Users who may answer. */
users?: Array<string> | undefined;
/** Teams whose members may answer. */
teams?: Array<string> | undefined;
/** Roles in `org` that may answer. */
roles?: Array<string> | undefined;
/** The organisation of `roles`. */
org?: string | undefined;
/** The user who invoked the run and may not answer. */
excluded_user?: string | undefined;
/** All users who may not answer: they invoked the run or one that led to it. */
excluded_users?: Array<string> | undefined;
};

/** A link by which a person without an account answers an approval. */
export type ApprovalLink = {
/** Shows the question on GET and takes the answer once on POST. Shown only here. */
url: string;
/** When the link expires. */
expires_at: string;
};

/** An approval as the holder of a link sees it. */
export type LinkedApproval = {
/** `cancelled`: its run ended, or its node no longer waits. */
status: 'waiting' | 'answered' | 'expired' | 'cancelled';
/** What is asked. */
question: string;
/** The JSON Schema that `data` of the answer must match. */
form: Record<string, unknown>;
/** To whom the link was sent. */
sent_to: string;
/** When the link or the approval expires, whichever is earlier. */
expires_at?: string | undefined;
};

/** The data of an event of the stream. */
export type StreamedEvent = LoggedEvent | StreamPosition;

/** What was found about quotes, signed with the key of the audit log. */
export type SignedCitations = {
/** What the signature covers. */
statement: {
/** dap_… */
app: string;
/** sbx_… */
sandbox: string;
/** When the quotes were checked. */
verified_at: string;
/** The SHA-256 of `text`, in hexadecimal. */
text_digest?: string | undefined;
/** The quotes, in their order. */
quotes: Array<{
/** The quote. */
text: string;
/** Where it begins in `text`, in UTF-16 code units. */
start?: number | undefined;
/** Where it ends; exclusive. */
end?: number | undefined;
/** `exact`: the document has these characters. `normalised`: it differs in white space, quotation marks, dashes, hyphens at line ends, the pipes of tables or emphasis, never in case, digits or words. `elided`: its parts stand in this order under one heading. `altered`: the document says something similar, see `difference`. `not_found`: in no document that the caller may read. `too_short`: under three words. */
status: 'exact' | 'normalised' | 'elided' | 'altered' | 'not_found' | 'too_short';
/** cdo_…; the document that says this, or something similar. */
document?: string | undefined;
/** cso_… */
source?: string | undefined;
/** The title of the document. */
title?: string | undefined;
/** The version of the document: the SHA-256 of its text, in hexadecimal. */
content_hash?: string | undefined;
/** The version of the document. Absent if its source keeps none. */
version?: number | undefined;
/** One, or one for each part of an elided quote. */
places?: Array<{
/** Where it begins in the text of the document. */
start_byte: number;
/** Where it ends; exclusive. */
end_byte: number;
/** Present if the text has page marks. */
start_page?: number | undefined;
/** Its last page. */
end_page?: number | undefined;
/** What the document says there. */
text: string;
/** With `boxes`: where it stands on the pages of the PDF, one rectangle for each line; empty if unknown. */
boxes?: Array<{
/** The page, from 1. */
page: number;
/** In points from the left edge of the page as it is shown. */
left: number;
/** In points from the upper edge. */
top: number;
/** In points from the left edge. */
right: number;
/** In points from the upper edge. */
bottom: number;
/** The width of the page in points. */
page_width: number;
/** Its height. */
page_height: number;
}> | undefined;
}> | undefined;
/** Only if `altered`: the words of the quote and of the document, in their order. */
difference?: Array<{
/** Who has these words. */
type: 'same' | 'only_in_quote' | 'only_in_source';
/** The words. */
text: string;
}> | undefined;
}>;
/** Of `text`. */
sentences?: Array<{
/** Where it begins in `text`, in UTF-16 code units. */
start: number;
/** Where it ends; exclusive. */
end: number;
/** `quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a document. `uncited`: neither. */
status: 'quoted' | 'cited' | 'uncited';
}> | undefined;
};
/** The id of the key that signed it. */
key_id: string;
/** The public key, an Ed25519 key of 32 bytes, in hexadecimal. */
public_key: string;
/** Ed25519 over the statement, in hexadecimal. The guide "Answers" describes the bytes. */
signature: string;
};

/** A text from sources, with what was checked. */
export type Answer = {
/** `extracts`: the best passages themselves, because the server has no model. `not_in_sources`: nothing was found, or the model says that it is not there. `unsupported`: there was a sentence without support (`refuse`), or none with it (`remove`). `model_refused`: the model refused to write. In the last three, `text` is empty. */
status: 'answered' | 'extracts' | 'not_in_sources' | 'unsupported' | 'model_refused';
/** The answer in Markdown, with citations such as [1]. */
text: string;
/** The sentences of the text, in their order. */
sentences: Array<AnswerSentence>;
/** What the text cites or quotes. */
citations: Array<Citation>;
/** The number of sentences that were removed. */
removed: number;
/** Whether the model reached the limit of its text. */
incomplete: boolean;
/** The model that wrote it. */
model: string | null;
/** The tokens of the request to the model; null without one, and if it was ended. */
usage: {
/** As the provider counts them. */
prompt_tokens: number;
/** As the provider counts them. */
completion_tokens: number;
/** As the provider counts them. */
total_tokens: number;
} | null;
/** Only if the operator has set a judge and a model was asked: what it did. */
judge?: {
/** The model; null if it wrote nothing usable. */
model: string | null;
/** The number of sentences with a verdict, removed ones included. */
judged: number;
/** Why it gave no further verdicts: `llm_failed`, `llm_timeout`, `invalid_output`, `refused`, `token_budget_exceeded`, or another code of an error; null if it did not fail. */
error: string | null;
/** The tokens of its requests. */
usage: {
/** As the provider counts them. */
prompt_tokens: number;
/** As the provider counts them. */
completion_tokens: number;
/** As the provider counts them. */
total_tokens: number;
};
} | undefined;
};

/** A file was stored: the message to webhooks. */
export type FileCreatedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'file.created';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The file (`fil_…`). */
file: string;
/** The name of the file. */
filename: string;
/** The media type. */
content_type: string;
/** The size in bytes. */
size: number;
/** The organisation (`org_…`) that owns the file. */
org?: string | undefined;
/** The team (`tea_…`) that owns the file. */
team?: string | undefined;
/** The user (`usr_…`) who owns the file. */
user?: string | undefined;
/** The agent (`agt_…`) that owns the file. */
agent?: string | undefined;
};
};

/** A name, the sharing or the metadata of a file changed: the message to webhooks. */
export type FileUpdatedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'file.updated';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The file (`fil_…`). */
file: string;
/** The name of the file. */
filename: string;
/** The media type. */
content_type: string;
/** The size in bytes. */
size: number;
/** The organisation (`org_…`) that owns the file. */
org?: string | undefined;
/** The team (`tea_…`) that owns the file. */
team?: string | undefined;
/** The user (`usr_…`) who owns the file. */
user?: string | undefined;
/** The agent (`agt_…`) that owns the file. */
agent?: string | undefined;
};
};

/** An extraction ended with its text: the message to webhooks. */
export type ExtractionCompletedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'extraction.completed';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The extraction (`ext_…`). */
extraction: string;
/** What was read. */
kind: 'document' | 'link' | 'site';
/** How it ended. */
state: 'done' | 'failed';
/** The file (`fil_…`) that was read. */
file?: string | undefined;
/** The URL that was read. */
url?: string | undefined;
/** The kind of failure. */
failure_reason?: string | undefined;
};
};

/** An extraction failed: the message to webhooks. */
export type ExtractionFailedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'extraction.failed';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The extraction (`ext_…`). */
extraction: string;
/** What was read. */
kind: 'document' | 'link' | 'site';
/** How it ended. */
state: 'done' | 'failed';
/** The file (`fil_…`) that was read. */
file?: string | undefined;
/** The URL that was read. */
url?: string | undefined;
/** The kind of failure. */
failure_reason?: string | undefined;
};
};

/** Content became searchable: the message to webhooks. */
export type IngestionSucceededMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'ingestion.succeeded';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The ingestion (`cig_…`). */
ingestion: string;
/** The knowledge source (`cso_…`). */
source: string;
/** How it ended. */
status: 'succeeded' | 'failed';
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
};
};

/** An ingestion failed: the message to webhooks. */
export type IngestionFailedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'ingestion.failed';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The ingestion (`cig_…`). */
ingestion: string;
/** The knowledge source (`cso_…`). */
source: string;
/** How it ended. */
status: 'succeeded' | 'failed';
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
};
};

/** A source was created: the message to webhooks. */
export type KnowledgeSourceCreatedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'knowledge_source.created';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The knowledge source (`cso_…`). */
source: string;
/** The type of the source. */
type: string;
/** The state of the source. */
state: string;
};
};

/** A source changed: the message to webhooks. */
export type KnowledgeSourceUpdatedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'knowledge_source.updated';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The knowledge source (`cso_…`). */
source: string;
/** The type of the source. */
type: string;
/** The state of the source. */
state: string;
};
};

/** A source was deleted: the message to webhooks. */
export type KnowledgeSourceDeletedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'knowledge_source.deleted';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The knowledge source (`cso_…`). */
source: string;
/** The type of the source. */
type: string;
/** The state of the source. */
state: string;
};
};

/** A run ended with its result: the message to webhooks. */
export type AutomationRunCompletedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'automation_run.completed';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The run (`atr_…`). */
run: string;
/** The automation (`aut_…`). */
automation: string;
/** How it ended. */
status: 'completed' | 'failed';
/** What the run returned. */
result?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
};
};

/** A run failed: the message to webhooks. */
export type AutomationRunFailedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'automation_run.failed';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The run (`atr_…`). */
run: string;
/** The automation (`aut_…`). */
automation: string;
/** How it ended. */
status: 'completed' | 'failed';
/** What the run returned. */
result?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
};
};

/** A run asks people and waits for an answer: the message to webhooks. */
export type ApprovalRequestedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'approval.requested';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The approval (`apr_…`). */
approval: string;
/** The run that waits (`atr_…`). */
run: string;
/** The automation (`aut_…`). */
automation: string;
/** The node that asks. */
node_id: string;
/** What is asked. */
question: string;
/** When the approval expires. */
expires_at?: string | undefined;
};
};

/** An approval was answered: the message to webhooks. */
export type ApprovalAnsweredMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'approval.answered';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The approval (`apr_…`). */
approval: string;
/** The run that waits (`atr_…`). */
run: string;
/** The automation (`aut_…`). */
automation: string;
/** The node that asks. */
node_id: string;
/** The user, the developer, `secret key`, or the holder of a link. */
answered_by: string;
};
};

/** A budget for language models has reached a limit: the message to webhooks. */
export type ModelBudgetReachedMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'model_budget.reached';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The budget (`mbg_…`). */
budget: string;
/** Which limit was reached. Beyond the hard one, calls are refused. */
level: 'soft' | 'hard';
/** Whose budget it is, such as `user`. */
subject: string;
/** The id of the user, agent …; null for the app. */
subject_id: string | null;
/** When the count starts at 0 again. */
period: 'day' | 'month' | 'total';
/** The end of the period, in ISO 8601. */
resets_at: string | null;
/** Tokens used, with those reserved by calls in progress. */
tokens: number;
/** Money used, in millionths of a currency unit. */
cost: number;
};
};

/** A run of a workflow in code has work: sent to the webhook of its function alone: the message to webhooks. */
export type AutomationRunReadyMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'automation_run.ready';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The run (`atr_…`). */
run: string;
/** Its automation. */
automation: string;
/** The name of its program. */
workflow: string;
/** The lookup key of the automation. */
lookup_key?: string | undefined;
/** The credential for the run, `rct_…`. Only in the message itself. */
claim?: string | undefined;
/** When the claim expires. Only in the message itself. */
lease_until?: string | undefined;
/** Where the claim is used, `…/api/v1/claimed_run`. Only in the message itself. */
url?: string | undefined;
};
};

/** Sent by the test of a webhook, to that webhook alone: the message to webhooks. */
export type WebhookTestMessage = {
/** The event (`evt_…`); the same at every attempt. */
id: string;
/** The name of the event. */
type: 'webhook.test';
/** When it happened, in ISO 8601. */
timestamp: string;
/** Its number in production or in the sandbox. */
sequence: number;
/** The entries. */
data: {
/** The webhook (`whk_…`). */
webhook: string;
};
};

export type GetHealthResponse = {
/** The status. */
status: 'ok';
};

export type GetReadinessResponse = {
/** The status. */
status: 'ready';
/** The result of each check. */
checks: {
/** Whether the process has finished its start. */
start: 'ok' | 'failed';
/** Whether PostgreSQL can be reached. */
database: 'ok' | 'failed';
/** Whether the database has the schema of this release. */
migrations: 'ok' | 'failed';
/** Whether the contents of files can be reached. */
blobs: 'ok' | 'failed';
};
};

export type CreateAppRequest = {
/** The name. */
name: string;
};

/** What every page of a list has in addition to its entries in `data`. */
export type Page = {
/** The number of the page, from 1. */
page: number;
/** The number of entries on a full page. */
page_size: number;
/** The exact number of entries on all pages. */
total_entries: number;
/** The number of pages. */
total_pages: number;
/** Whether a page follows. */
has_next: boolean;
/** Whether a page precedes. */
has_prev: boolean;
};

/** One page of a list. */
export type AppPage = Page & {
/** The entries. */
data: Array<App>;
};

export type UpdateAppRequest = {
/** The name. */
name?: string | undefined;
/** The app’s own limits, at most those set by the operator of the server; null removes one. They apply to production and to each sandbox separately. */
quotas?: {
/** The most bytes of files that the app may store; null for no limit. */
file_bytes?: number | null | undefined;
/** The most documents that the app may have; null for no limit. */
documents?: number | null | undefined;
/** The most pages that the app may read in a day; null for no limit. */
pages?: number | null | undefined;
/** The most tokens that the app may use in a day; null for no limit. */
tokens?: number | null | undefined;
/** The most sandboxes that the app may have; null for no limit. */
sandboxes?: number | null | undefined;
} | undefined;
/** How long runs of automations without `retention` are kept after their end. */
run_retention?: {
/** Days after their end for which completed and cancelled runs are kept. Default: no limit. */
days?: number | undefined;
/** How many completed and cancelled runs of each automation are kept, the newest. Default: no limit. */
runs?: number | undefined;
/** Days for which failed runs are kept. Default: `days`. */
failed_days?: number | undefined;
/** How many failed runs of each automation are kept, the newest. Default: `runs`. */
failed_runs?: number | undefined;
/** Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false. */
files?: boolean | undefined;
} | null | undefined;
/** Whether assistants may connect to the MCP endpoint by OAuth, where the server runs with `QUARRY_MCP_OAUTH`. `false` also disconnects those that are. */
assistants?: boolean | undefined;
};

export type CreateSandboxRequest = {
/** The name. */
name: string;
};

/** One page of a list. */
export type SandboxPage = Page & {
/** The entries. */
data: Array<Sandbox>;
};

export type UpdateSandboxRequest = {
/** The name. */
name?: string | undefined;
};

export type CreateKeyRequest = {
/** The type. */
type: 'secret' | 'publishable';
/** The name. */
name?: string | undefined;
/** sbx_…; the key then works only in that sandbox. */
sandbox?: string | undefined;
/** Default: it does not expire. */
expires_in_days?: number | undefined;
/** For a secret key: what it may do. `read` allows reading everything, an area such as `kv` all operations of that area, `kv:read` reading in it. Default: everything. */
scopes?: Array<'read' | 'files' | 'extractions' | 'knowledge' | 'automations' | 'kv' | 'webhooks' | 'people' | 'app' | 'files:read' | 'extractions:read' | 'knowledge:read' | 'automations:read' | 'kv:read' | 'webhooks:read' | 'people:read' | 'app:read'> | undefined;
};

/** One page of a list. */
export type ApiKeyPage = Page & {
/** The entries. */
data: Array<ApiKey>;
};

/** One page of a list. */
export type SetAsideJobPage = Page & {
/** The entries. */
data: Array<SetAsideJob>;
};

/** One page of a list. */
export type AuditEntryPage = Page & {
/** The entries. */
data: Array<AuditEntry>;
};

/** One page of a list. */
export type CredentialUsePage = Page & {
/** The entries. */
data: Array<CredentialUse>;
};

export type LoginRequest = {
/** The email address of the user; upper and lower case are the same. */
email: string;
/** The password. */
password: string;
};

export type RefreshSessionRequest = {
/** The refresh token (`rt_…`). Each can be used once. */
refresh_token: string;
};

export type LogoutRequest = {
/** The refresh token (`rt_…`). Each can be used once. */
refresh_token: string;
};

export type CreateUserTokenRequest = {
/** Default: session, or personal for end users. */
type?: 'session' | 'personal' | undefined;
/** The name. */
name?: string | undefined;
/** For personal tokens. Default 30. */
expires_in_days?: number | undefined;
/** Only full_access is supported. */
scopes?: string | undefined;
};

export type ListUserTokensResponse = {
/** The entries. */
data: Array<PersonalToken>;
};

export type CreateIdentityIssuerRequest = {
/** The issuer, exactly as its tokens name it, such as https://login.example.com. */
issuer: string;
/** The audience of tokens for this app. */
audience: string;
/** Where the public keys of the issuer are. Default: as its discovery document says. */
jwks_url?: string | null | undefined;
/** Whether an unknown account becomes a new user. Default false. */
create_users?: boolean | undefined;
/** Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false. */
link_by_email?: boolean | undefined;
/** Which claims name the organisation, role, teams and name of a user. Other claims are ignored. */
claims?: {
/** The organisation (`org_…`). */
org?: {
/** The claim of the token that is read. */
claim: string;
/** Organisations (org_…) by value. */
values?: Record<string, string> | undefined;
} | undefined;
/** The role. */
role?: {
/** The claim of the token that is read. */
claim: string;
/** Roles in the organisation by value. Default `member`. */
values?: Record<string, 'admin' | 'member' | 'viewer'> | undefined;
} | undefined;
/** Teams. */
teams?: {
/** The claim of the token that is read. */
claim: string;
/** Teams (tem_…) by value. */
values?: Record<string, string> | undefined;
} | undefined;
/** The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none. */
groups?: {
/** The claim of the token that is read. */
claim: string;
} | undefined;
/** The name. */
name?: string | undefined;
} | undefined;
/** How the web console signs in with this issuer. */
console?: {
/** The client id of the console at the issuer. */
client_id: string;
/** Write-only: never returned. */
client_secret?: string | undefined;
} | null | undefined;
};

/** One page of a list. */
export type IdentityIssuerPage = Page & {
/** The entries. */
data: Array<IdentityIssuer>;
};

export type UpdateIdentityIssuerRequest = {
/** The audience of tokens for this app. */
audience?: string | undefined;
/** Where the public keys of the issuer are. Default: as its discovery document says. */
jwks_url?: string | null | undefined;
/** Whether an unknown account becomes a new user. Default false. */
create_users?: boolean | undefined;
/** Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false. */
link_by_email?: boolean | undefined;
/** Which claims name the organisation, role, teams and name of a user. Other claims are ignored. */
claims?: {
/** The organisation (`org_…`). */
org?: {
/** The claim of the token that is read. */
claim: string;
/** Organisations (org_…) by value. */
values?: Record<string, string> | undefined;
} | undefined;
/** The role. */
role?: {
/** The claim of the token that is read. */
claim: string;
/** Roles in the organisation by value. Default `member`. */
values?: Record<string, 'admin' | 'member' | 'viewer'> | undefined;
} | undefined;
/** Teams. */
teams?: {
/** The claim of the token that is read. */
claim: string;
/** Teams (tem_…) by value. */
values?: Record<string, string> | undefined;
} | undefined;
/** The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none. */
groups?: {
/** The claim of the token that is read. */
claim: string;
} | undefined;
/** The name. */
name?: string | undefined;
} | undefined;
/** How the web console signs in with this issuer. */
console?: {
/** The client id of the console at the issuer. */
client_id: string;
/** Write-only: never returned. */
client_secret?: string | undefined;
} | null | undefined;
};

/** One page of a list. */
export type ConnectedAssistantPage = Page & {
/** The entries. */
data: Array<ConnectedAssistant>;
};

export type CreateOrgRequest = {
/** The name. */
name: string;
/** Unique within the app. */
slug?: string | undefined;
/** The logo. */
logo?: Picture | null | undefined;
};

/** One page of a list. */
export type OrgPage = Page & {
/** The entries. */
data: Array<Org>;
};

export type UpdateOrgRequest = {
/** The name. */
name?: string | undefined;
/** Unique within the app. */
slug?: string | undefined;
/** The logo. */
logo?: Picture | null | undefined;
};

export type CreateUserRequest = {
/** Unique in the app or sandbox. */
email: string;
/** The name. */
name?: string | undefined;
/** The password. */
password?: string | undefined;
/** org_… */
org?: string | undefined;
/** The role in the organisation. */
org_role?: 'admin' | 'member' | 'viewer' | undefined;
/** Whether the user represents a program. */
is_system_user?: boolean | undefined;
/** Stored unchanged. */
metadata?: Record<string, unknown> | undefined;
};

/** One page of a list. */
export type UserPage = Page & {
/** The entries. */
data: Array<User>;
};

export type UpdateUserRequest = {
/** Unique in the app or sandbox. */
email?: string | undefined;
/** The name. */
name?: string | undefined;
/** The password. */
password?: string | undefined;
/** The organisation (`org_…`). */
org?: string | null | undefined;
/** The role in the organisation. */
org_role?: 'admin' | 'member' | 'viewer' | undefined;
/** Replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
};

export type CreateTeamRequest = {
/** The name. */
name: string;
/** A text for people. */
description?: string | undefined;
/** org_… */
org?: string | undefined;
/** Stored unchanged. */
metadata?: Record<string, unknown> | undefined;
};

/** One page of a list. */
export type TeamPage = Page & {
/** The entries. */
data: Array<Team>;
};

export type UpdateTeamRequest = {
/** The name. */
name?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** Replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
};

/** One page of a list. */
export type MembershipPage = Page & {
/** The entries. */
data: Array<Membership>;
};

export type AddTeamMemberRequest = {
/** usr_… */
user?: string | undefined;
/** agt_… */
agent?: string | undefined;
/** The role. */
role?: 'owner' | 'admin' | 'member' | undefined;
};

export type UpdateTeamMemberRequest = {
/** The role. */
role: 'owner' | 'admin' | 'member';
};

export type CreateGroupRequest = {
/** Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group. */
namespace: string;
/** The name of the group in its namespace, which never changes. */
external_id: string;
/** The name. */
name?: string | undefined;
};

/** One page of a list. */
export type GroupPage = Page & {
/** The entries. */
data: Array<Group>;
};

export type UpdateGroupRequest = {
/** The name. */
name?: string | null | undefined;
};

/** One page of a list. */
export type GroupMemberPage = Page & {
/** The entries. */
data: Array<GroupMember>;
};

export type AddGroupMemberRequest = {
/** usr_… */
user: string;
};

export type SetGroupMembersRequest = {
/** The users (usr_…) who are the members from now on. */
users: Array<string>;
};

export type CreateErasureRequest = {
/** usr_… */
user?: string | undefined;
/** cdo_… */
document?: string | undefined;
/** cso_… */
source?: string | undefined;
/** Whether the files that the documents were read from are erased too. Default false. Those of a user always are. */
files?: boolean | undefined;
};

/** One page of a list. */
export type ErasurePage = Page & {
/** The entries. */
data: Array<Erasure>;
};

export type CreateAgentRequest = {
/** The name. */
name: string;
/** Your own name for the agent, unique for its owner. Must not look like an id. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** Who the agent is, as a prompt for a language model. */
identity?: string | undefined;
/** The model that the agent uses by default. */
model?: string | undefined;
/** The email address. */
email?: string | undefined;
/** The telephone number. */
phone_number?: string | undefined;
/** A text of your own that says where the agent comes from. */
originator?: string | undefined;
/** Stored unchanged; replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
/** The picture. */
profile_picture?: Picture | null | undefined;
/** org_… */
org?: string | undefined;
/** tem_… */
team?: string | undefined;
/** usr_… */
user?: string | undefined;
};

/** One page of a list. */
export type AgentPage = Page & {
/** The entries. */
data: Array<Agent>;
};

export type UpdateAgentRequest = {
/** The name. */
name?: string | undefined;
/** Your own name for the agent, unique for its owner. Must not look like an id. */
lookup_key?: string | undefined;
/** A text for people. */
description?: string | undefined;
/** Who the agent is, as a prompt for a language model. */
identity?: string | undefined;
/** The model that the agent uses by default. */
model?: string | undefined;
/** The email address. */
email?: string | undefined;
/** The telephone number. */
phone_number?: string | undefined;
/** A text of your own that says where the agent comes from. */
originator?: string | undefined;
/** Stored unchanged; replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
/** The picture. */
profile_picture?: Picture | null | undefined;
};

export type CreateThreadRequest = {
/** The title. */
title?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The organisation (`org_…`). */
org?: string | undefined;
};

/** One page of a list. */
export type ThreadPage = Page & {
/** The entries. */
data: Array<Thread>;
};

export type UpdateThreadRequest = {
/** The title. */
title?: string | undefined;
};

export type CreateThreadMessageRequest = {
/** The text. */
content: string;
/** Free key-value map. */
metadata?: Record<string, unknown> | undefined;
};

export type CreateThreadMessageResponse = {
/** msg_… */
id: string;
/** The thread (`thr_…`). */
thread: string;
/** The text. */
content: string;
/** A free key-value map, returned as stored. */
metadata: Record<string, unknown>;
/** When it was created, in ISO 8601. */
created_at: string;
};

export type CreateInstallationRequest = {
/** agt_… */
agent: string;
/** The kind. */
kind: 'webhook/inbound' | 'thread/messages';
};

/** One page of a list. */
export type InstallationPage = Page & {
/** The entries. */
data: Array<Installation>;
};

export type UpdateInstallationRequest = Record<string, never>;

export type CreateFileRequest = {
/** The filename with its extension. */
filename: string;
/** MIME type. */
content_type: string;
/** The contents in base64 (RFC 4648, section 4). */
data: string;
acl?: AclInput | undefined;
/** Associated agent, whose org owns the file. */
agent?: string | undefined;
/** Default: the caller’s. */
org?: string | undefined;
/** Owner; takes precedence over `user`. */
team?: string | undefined;
/** Owner. Default: the calling user, unless a team is named. */
user?: string | undefined;
/** Make the file public at a permanent URL. Images only. */
share?: boolean | undefined;
/** The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token. */
automation_run?: string | undefined;
};

/** One page of a list. */
export type StoredFilePage = Page & {
/** The entries. */
data: Array<StoredFile>;
};

export type UpdateFileRequest = {
/** The filename with its extension. */
filename?: string | undefined;
/** Replaces the whole map. */
provider_metadata?: Record<string, unknown> | undefined;
/** Whether the public URL of the picture works. */
share?: boolean | undefined;
acl?: AclInput | undefined;
};

export type CreateFileUploadUrlRequest = {
/** The filename with its extension. */
filename: string;
/** MIME type. */
content_type: string;
/** Maximum number of bytes. */
size?: number | undefined;
/** Expected SHA-256 in hex. */
checksum?: string | undefined;
/** Seconds. Default 3600. */
expires_in?: number | undefined;
/** Associated agent, whose org owns the file. */
agent?: string | undefined;
/** Default: the caller’s. */
org?: string | undefined;
/** Owner; takes precedence over `user`. */
team?: string | undefined;
/** Owner. Default: the calling user, unless a team is named. */
user?: string | undefined;
/** Make the file public at a permanent URL. Images only. */
share?: boolean | undefined;
/** The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token. */
automation_run?: string | undefined;
};

/** One page of a list. */
export type UploadPage = Page & {
/** The entries. */
data: Array<Upload>;
};

/** One page of a list. */
export type ConfigEntryPage = Page & {
/** The entries. */
data: Array<ConfigEntry>;
};

export type PutConfigRequest = {
/** The agent (agt_…) that owns the path. */
agent?: string | undefined;
/** The organisation (org_…) that owns the path. */
org?: string | undefined;
/** The text, of at most 262144 bytes in UTF-8. */
content: string;
/** Its media type. Default `text/plain`. */
content_type?: string | undefined;
/** Write only if this is the current version; 0: only if the path does not exist. Otherwise 412. */
if_version?: number | undefined;
};

export type CreateExtractionRequest = {
/** Where outputs are written. */
destination_kind: 'config' | 'storage';
/** The path prefix of the outputs. Required if `destination_kind` is config. */
destination_path?: string | undefined;
/** fil_…; the document to read. */
file?: string | undefined;
/** The page or site to read. */
url?: string | undefined;
/** `link` for one page, `site` for a whole site. */
mode?: 'link' | 'site' | undefined;
/** Maximum number of pages of a site. Default 100. */
max_pages?: number | undefined;
/** Only pages whose path matches one of these are read. Patterns are prefixes, in which * matches anything and a final $ matches the end. */
include_paths?: Array<string> | undefined;
/** Pages whose path matches one of these are not read. Patterns are prefixes, in which * matches anything and a final $ matches the end. */
exclude_paths?: Array<string> | undefined;
/** Maximum number of links from the start page. */
max_depth?: number | undefined;
/** Also read pages on subdomains of the start page’s host. */
allow_subdomains?: boolean | undefined;
/** Read pages that robots.txt disallows. Requires a secret key. */
ignore_robots?: boolean | undefined;
/** Whether to use sitemaps to find pages. Default include. */
sitemap?: 'include' | 'skip' | 'only' | undefined;
/** A JSON Schema (2020-12) for data that a language model extracts from each text; at most 64 KiB. References must stay within the schema. The extraction then always runs in the background (202). */
schema?: Record<string, unknown> | undefined;
/** Instructions for extracting the data. Requires schema. */
instructions?: string | undefined;
/** The model or alias that extracts the data. Default: as the operator set it. Requires schema. */
model?: string | undefined;
/** agt_…; the agent that owns the job and its outputs. */
agent?: string | undefined;
/** org_… */
org?: string | undefined;
};

/** One page of a list. */
export type ExtractionPage = Page & {
/** The entries. */
data: Array<Extraction>;
};

export type ListKvEntriesResponse = {
/** The entries. */
data: Array<KvListEntry>;
/** The number of the page, from 1. */
page?: number | undefined;
/** The number of entries on a full page. */
page_size?: number | undefined;
/** The exact number of entries on all pages. */
total_entries?: number | undefined;
/** The number of pages. */
total_pages?: number | undefined;
/** Whether a page follows. */
has_next?: boolean | undefined;
/** Whether a page precedes. */
has_prev?: boolean | undefined;
};

export type CreateKvEntryRequest = {
/** Any non-empty string, by default up to 1,024 bytes in UTF-8. */
key: string;
/** Any non-empty string, by default up to 1 MiB in UTF-8. */
value: string;
/** Seconds until the entry expires. Without it, the entry does not expire. */
ttl_seconds?: number | undefined;
/** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: unknown | undefined;
};

export type PutKvEntryRequest = {
/** Any non-empty string, by default up to 1 MiB in UTF-8. */
value: string;
/** Seconds until the entry expires. Without it, the entry does not expire. */
ttl_seconds?: number | undefined;
/** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: unknown | undefined;
};

export type ListKvEntriesByKeyResponse = {
/** The entries. */
data: Array<KvEntry>;
/** Null on the last page. */
next_cursor: string | null;
};

export type IncrementKvEntryRequest = {
/** The key. */
key: string;
/** The number to add; may be negative. Default 1. */
by?: number | undefined;
/** Sets when the entry expires. Without it, the expiry of an existing entry stays as it is. */
ttl_seconds?: number | undefined;
/** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: unknown | undefined;
};

export type BatchKvEntriesRequest = {
/** The operations, in order. All of them take effect, or none. */
operations: Array<{
/** What the operation does. */
op: 'get' | 'put' | 'delete' | 'increment';
/** The key. */
key: string;
/** Any non-empty string, by default up to 1 MiB in UTF-8. */
value?: string | undefined;
/** Sets when the entry expires. Without it, the expiry of an existing entry stays as it is. */
ttl_seconds?: number | undefined;
/** The number to add; may be negative. Default 1. */
by?: number | undefined;
/** Like the header If-Match: the batch fails unless the entry has this tag, or with `*` exists. */
if_match?: string | undefined;
/** Like the header If-None-Match: `*` fails the batch when the entry exists. */
if_none_match?: string | undefined;
}>;
/** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: unknown | undefined;
};

export type BatchKvEntriesResponse = {
/** The entries. */
data: Array<KvBatchResult>;
};

export type CreateWebhookRequest = {
/** The URL. */
url: string;
/** Names of events, or `*` for all. */
events?: Array<string> | undefined;
/** Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`. */
automations?: Array<string> | undefined;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** A text for people. */
description?: string | undefined;
};

/** One page of a list. */
export type WebhookPage = Page & {
/** The entries. */
data: Array<Webhook>;
};

export type UpdateWebhookRequest = {
/** The URL. */
url?: string | undefined;
/** Names of events, or `*` for all. */
events?: Array<string> | undefined;
/** Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`. */
automations?: Array<string> | undefined;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** A text for people. */
description?: string | null | undefined;
};

export type RotateWebhookSecretRequest = {
/** How long deliveries are also signed with the previous secret. Default 86400, a day. */
overlap_seconds?: number | undefined;
};

/** One page of a list. */
export type WebhookDeliveryPage = Page & {
/** The entries. */
data: Array<WebhookDelivery>;
};

export type CreateModelRequest = {
/** The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases. */
name: string;
/** What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`. */
kind?: 'embedding' | 'rerank' | undefined;
/** The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking. */
provider: 'openai' | 'anthropic' | 'google' | 'cohere';
/** The model, as its provider names it. */
model: string;
/** The base URL, up to and including the version. Required for `openai`. */
url?: string | undefined;
/** The key of the provider. It is never returned, and is only sent to the host of `url`. */
key?: string | undefined;
/** How many tokens the messages and the text may have together. */
context_tokens?: number | undefined;
/** How many tokens the model can write in one response. */
output_tokens?: number | undefined;
/** How long the model may write nothing before it is given up. */
timeout_seconds?: number | undefined;
/** How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused. */
dimensions?: number | undefined;
/** Of the kind `embedding`: how many texts one request may have. Default: 64. */
batch_texts?: number | undefined;
/** Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces. */
query_prefix?: string | undefined;
/** Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again. */
passage_prefix?: string | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default). */
query_input_type?: string | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix. */
passage_input_type?: string | undefined;
/** Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1. */
fusion_weight?: number | undefined;
/** What the model reads. Default: only text. */
modalities?: Array<'text' | 'image' | 'file'> | undefined;
/** What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens. */
prices?: {
/** What a million tokens of messages cost. */
input: number;
/** What a million written tokens cost. */
output: number;
} | undefined;
};

/** One page of a list. */
export type ModelPage = Page & {
/** The entries. */
data: Array<Model>;
};

export type UpdateModelRequest = {
/** The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases. */
name?: string | undefined;
/** The model, as its provider names it. */
model?: string | undefined;
/** The base URL. A URL of another host removes the key, unless one is sent with it. */
url?: string | undefined;
/** The key of the provider; null removes it. */
key?: string | null | undefined;
/** How many tokens the messages and the text may have together. */
context_tokens?: number | null | undefined;
/** How many tokens the model can write in one response. */
output_tokens?: number | null | undefined;
/** How long the model may write nothing before it is given up. */
timeout_seconds?: number | null | undefined;
/** How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused. */
dimensions?: number | undefined;
/** Of the kind `embedding`: how many texts one request may have. Default: 64. */
batch_texts?: number | null | undefined;
/** Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces. */
query_prefix?: string | null | undefined;
/** Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again. */
passage_prefix?: string | null | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default). */
query_input_type?: string | null | undefined;
/** Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix. */
passage_input_type?: string | null | undefined;
/** Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1. */
fusion_weight?: number | null | undefined;
/** What the model reads. Default: only text. */
modalities?: Array<'text' | 'image' | 'file'> | undefined;
/** What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens. */
prices?: {
/** What a million tokens of messages cost. */
input: number;
/** What a million written tokens cost. */
output: number;
} | null | undefined;
};

export type CreateModelAliasRequest = {
/** The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases. */
name: string;
/** Names of models, in the order in which they are tried. Aliases do not nest. */
models: Array<string>;
};

/** One page of a list. */
export type ModelAliasPage = Page & {
/** The entries. */
data: Array<ModelAlias>;
};

export type UpdateModelAliasRequest = {
/** The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases. */
name?: string | undefined;
/** Names of models, in the order in which they are tried. Aliases do not nest. */
models?: Array<string> | undefined;
};

/** One page of a list. */
export type ModelCallPage = Page & {
/** The entries. */
data: Array<ModelCall>;
};

export type ListAvailableModelsResponse = {
/** The entries. */
data: Array<AvailableModel>;
};

export type CreateModelBudgetRequest = {
/** Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production. */
subject: 'app' | 'sandbox' | 'user' | 'agent' | 'automation' | 'run';
/** The one that the budget is for. Absent: each user, agent, run … has the budget for itself. */
subject_id?: string | undefined;
/** When the count starts at 0 again: each day or month (UTC), or never. */
period: 'day' | 'month' | 'total';
/** Tokens beyond which calls are refused. */
tokens?: number | undefined;
/** Money beyond which calls are refused, in millionths of a currency unit. */
cost?: number | undefined;
/** Tokens beyond which the event `model_budget.reached` is emitted. */
soft_tokens?: number | undefined;
/** Money beyond which the event is emitted, in millionths of a currency unit. */
soft_cost?: number | undefined;
};

/** One page of a list. */
export type ModelBudgetPage = Page & {
/** The entries. */
data: Array<ModelBudget>;
};

export type UpdateModelBudgetRequest = {
/** Tokens beyond which calls are refused. Null removes the limit. */
tokens?: number | null | undefined;
/** Money beyond which calls are refused, in millionths of a currency unit. Null removes the limit. */
cost?: number | null | undefined;
/** Tokens beyond which the event `model_budget.reached` is emitted. Null removes the limit. */
soft_tokens?: number | null | undefined;
/** Money beyond which the event is emitted, in millionths of a currency unit. Null removes the limit. */
soft_cost?: number | null | undefined;
};

/** One page of a list. */
export type ModelBudgetUsePage = Page & {
/** The entries. */
data: Array<ModelBudgetUse>;
};

/** One page of a list. */
export type ModelUsagePage = Page & {
/** The entries. */
data: Array<ModelUsage>;
};

export type ListKnowledgeSourceKindsResponse = {
/** The entries. */
data: Array<{
/** The type. */
type: string;
/** A name for people. */
label: string;
/** A text for people. */
description: string;
/** JSON Schema of `payload`. */
payload_schema: Record<string, unknown>;
/** JSON Schema of `credentials`. Absent: pulls of this kind use none. */
credentials_schema?: Record<string, unknown> | undefined;
}>;
};

/** One page of a list. */
export type KnowledgeSourcePage = Page & {
/** The entries. */
data: Array<KnowledgeSource>;
};

export type CreateKnowledgeSourceRequest = {
/** A type from the kinds list. */
type: string;
/** The agent that owns it, or that it is about. */
agent?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
/** The organisation, if it owns the source itself. Not allowed with another owner. */
org?: string | undefined;
/** The source that it was derived from; null for others. */
parent_source?: string | undefined;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too. */
credentials?: {
/** For HTTP, with `password`. */
username?: string | undefined;
/** For HTTP, with `username`. */
password?: string | undefined;
/** For HTTP: a bearer token. For repositories: the token, as the password. */
token?: string | undefined;
/** For buckets, with `secret_access_key`. */
access_key_id?: string | undefined;
/** For buckets, with `access_key_id`. */
secret_access_key?: string | undefined;
/** For buckets: of temporary keys. */
session_token?: string | undefined;
} | null | undefined;
/** Configuration; its members depend on the type. */
payload?: Record<string, unknown> | undefined;
/** Free key-value map. */
metadata?: Record<string, unknown> | undefined;
/** The state. */
state?: 'active' | 'paused' | undefined;
/** The thread (`thr_…`). */
thread?: string | undefined;
/** A model for embeddings, or an alias, that computes the vectors of the source. Without one, the installation’s embedder does. Only secret keys and developers set it. */
embedder?: string | undefined;
/** For how many days versions of documents are kept after they were changed or deleted. By default, none are kept. */
version_retention_days?: number | undefined;
};

export type UpdateKnowledgeSourceRequest = {
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too. */
credentials?: {
/** For HTTP, with `password`. */
username?: string | undefined;
/** For HTTP, with `username`. */
password?: string | undefined;
/** For HTTP: a bearer token. For repositories: the token, as the password. */
token?: string | undefined;
/** For buckets, with `secret_access_key`. */
access_key_id?: string | undefined;
/** For buckets, with `access_key_id`. */
secret_access_key?: string | undefined;
/** For buckets: of temporary keys. */
session_token?: string | undefined;
} | null | undefined;
/** Replaces the whole payload. */
payload?: Record<string, unknown> | undefined;
/** Replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
/** The state. */
state?: 'active' | 'paused' | undefined;
/** A model for embeddings, or an alias, that computes the vectors of the source; null for the installation’s embedder. The vectors are computed in the background, and searches use the previous ones until all documents have theirs. Only secret keys and developers set it. */
embedder?: string | null | undefined;
/** For how many days versions of documents are kept after they were changed or deleted. By default, none are kept. A shorter time applies to existing versions too; null deletes them. */
version_retention_days?: number | null | undefined;
};

export type GetInboundUrlResponse = {
/** The URL. */
url: string;
/** Whether posts must be signed as in Standard Webhooks. */
signed: boolean;
/** Until then, signatures with the previous secret are also accepted. */
previous_secret_until?: string | undefined;
};

export type RotateInboundUrlResponse = {
/** The URL. */
url: string;
/** Whether posts must be signed as in Standard Webhooks. */
signed: boolean;
/** Until then, signatures with the previous secret are also accepted. */
previous_secret_until?: string | undefined;
};

export type SetInboundSecretRequest = {
/** whsec_…, the secret that the sender provides. Default: a new one, to give to the sender. */
secret?: string | undefined;
/** How long signatures with the previous secret are also accepted, in seconds. Default 86400, a day. */
overlap_seconds?: number | undefined;
};

export type SetInboundSecretResponse = {
/** whsec_…, only in this response: it cannot be read again. */
secret: string;
/** Until when the previous secret is valid too, in ISO 8601. */
previous_secret_until?: string | undefined;
};

export type IngestIntoKnowledgeSourceRequest = {
/** The text. */
content?: {
/** The document: text, or its bytes in base64. */
data: string;
/** Default raw. */
data_encoding?: 'raw' | 'base64' | undefined;
/** The media type. */
content_type?: string | undefined;
/** The name of the file. */
filename?: string | undefined;
} | undefined;
/** The id (fil_…) of an uploaded file. */
file?: string | undefined;
/** Pull again from the source's configuration. */
pull?: boolean | undefined;
/** Display title. */
title?: string | undefined;
/** Free key-value map. */
metadata?: Record<string, unknown> | undefined;
acl?: DocumentAcl | undefined;
/** Reuse a document with the same bytes and the same readers. Push only. */
dedupe?: boolean | undefined;
/** What to do while another ingestion of the source is active: return that one (default), queue, or 409. */
on_active?: 'return' | 'queue' | 'error' | undefined;
/** With `pull`: delete what the listing no longer contains, even if it is more than half of the source. */
confirm_deletions?: boolean | undefined;
};

export type IngestBatchIntoKnowledgeSourceRequest = {
/** The items, in order. */
items: Array<{
/** The text. */
content?: {
/** The document: text, or its bytes in base64. */
data: string;
/** Default raw. */
data_encoding?: 'raw' | 'base64' | undefined;
/** The media type. */
content_type?: string | undefined;
/** The name of the file. */
filename?: string | undefined;
} | undefined;
/** The file (`fil_…`). */
file?: string | undefined;
/** Display title. */
title?: string | undefined;
/** Free key-value map. */
metadata?: Record<string, unknown> | undefined;
/** Whether content that the source already has is reused. */
dedupe?: boolean | undefined;
}>;
acl?: DocumentAcl | undefined;
/** What to do while another ingestion of the source is active: return that one (default), queue, or 409. */
on_active?: 'return' | 'queue' | 'error' | undefined;
};

/** One page of a list. */
export type KnowledgeIngestionPage = Page & {
/** The entries. */
data: Array<KnowledgeIngestion>;
};

/** One page of a list. */
export type KnowledgeDocumentPage = Page & {
/** The entries. */
data: Array<KnowledgeDocument>;
};

export type UpdateKnowledgeDocumentRequest = {
/** The text. */
content?: {
/** The document: text, or its bytes in base64. */
data: string;
/** Default raw. */
data_encoding?: 'raw' | 'base64' | undefined;
/** The media type. */
content_type?: string | undefined;
/** The name of the file. */
filename?: string | undefined;
} | undefined;
/** The file (`fil_…`). */
file?: string | undefined;
/** Display title. */
title?: string | undefined;
/** Free key-value map. */
metadata?: Record<string, unknown> | undefined;
/** The readers of the new content. null: every reader of the source. Omitted: those of the old one. */
acl?: DocumentAcl | null | undefined;
};

/** Either `grants`, which replaces the list, or `add` and `remove`, which change it. */
export type UpdateKnowledgeDocumentAclRequest = {
/** Who may do what: the whole list. */
grants?: Array<ReadGrant> | undefined;
/** Grants to add, or to merge with those of the same principal. */
add?: Array<ReadGrant> | undefined;
/** Principals whose grants are removed. */
remove?: Array<ReadGrantRemoval> | undefined;
};

/** One page of a list. */
export type KnowledgeDocumentChunkPage = Page & {
/** The entries. */
data: Array<KnowledgeDocumentChunk>;
};

export type SearchKnowledgeSourceRequest = {
/** The text to search for. */
query: string;
/** Default hybrid. */
mode?: 'hybrid' | 'vector' | 'fulltext' | undefined;
/** Default 20. */
max_results?: number | undefined;
/** Minimum cosine similarity of vector hits. */
min_similarity?: number | undefined;
/** Only documents that were indexed within this many days. */
recency_days?: number | undefined;
/** Conditions on document metadata. */
filter?: Record<string, unknown> | undefined;
/** How the score came about, if the search asked for it. */
explain?: boolean | undefined;
/** Whether to rerank. Default true in mode hybrid if the server has a reranker. */
rerank?: boolean | undefined;
/** A model for reranking, or an alias, that orders the results instead of the server’s reranker. */
rerank_model?: string | undefined;
/** Whether to return the positions of the query's words in each hit. */
highlights?: boolean | undefined;
/** Number of neighbouring chunks to return on either side of each hit. */
context?: number | undefined;
/** Returns only the best hit of each document. */
group_by?: 'document' | undefined;
/** Members of document metadata whose values to count. */
facets?: Array<string> | undefined;
};

export type SearchKnowledgeSourceResponse = {
/** The entries. */
data: Array<SearchHit>;
/** How many documents among the best 1,000 passages have each value; the 20 most frequent. */
facets?: Record<string, Array<{
/** The value. */
value: string | number | boolean;
/** How many there are. */
count: number;
}>> | undefined;
/** Why the query has no vector. The results are those of full-text search. */
vectors_unavailable?: string | undefined;
/** Why the results are not reranked. */
rerank_unavailable?: string | undefined;
/** How the score came about, if the search asked for it. */
explain?: Record<string, unknown> | undefined;
};

export type SearchKnowledgeRequest = {
/** The text to search for. */
query: string;
/** Default hybrid. */
mode?: 'hybrid' | 'vector' | 'fulltext' | undefined;
/** Default 20. */
max_results?: number | undefined;
/** Minimum cosine similarity of vector hits. */
min_similarity?: number | undefined;
/** Only documents that were indexed within this many days. */
recency_days?: number | undefined;
/** Conditions on document metadata. */
filter?: Record<string, unknown> | undefined;
/** How the score came about, if the search asked for it. */
explain?: boolean | undefined;
/** Whether to rerank. Default true in mode hybrid if the server has a reranker. */
rerank?: boolean | undefined;
/** A model for reranking, or an alias, that orders the results instead of the server’s reranker. */
rerank_model?: string | undefined;
/** Whether to return the positions of the query's words in each hit. */
highlights?: boolean | undefined;
/** Number of neighbouring chunks to return on either side of each hit. */
context?: number | undefined;
/** Returns only the best hit of each document. */
group_by?: 'document' | undefined;
/** Members of document metadata whose values to count. */
facets?: Array<string> | undefined;
/** Only sources of these types. */
source_types?: Array<string> | undefined;
/** cso_…; only these sources. */
sources?: Array<string> | undefined;
};

export type SearchKnowledgeResponse = {
/** The entries. */
data: Array<SearchHit>;
/** How many documents among the best 1,000 passages have each value; the 20 most frequent. */
facets?: Record<string, Array<{
/** The value. */
value: string | number | boolean;
/** How many there are. */
count: number;
}>> | undefined;
/** Why the query has no vector. The results are those of full-text search. */
vectors_unavailable?: string | undefined;
/** Why the results are not reranked. */
rerank_unavailable?: string | undefined;
/** How the score came about, if the search asked for it. */
explain?: Record<string, unknown> | undefined;
};

export type SearchAgentKnowledgeRequest = {
/** The text to search for. */
query: string;
/** Default hybrid. */
mode?: 'hybrid' | 'vector' | 'fulltext' | undefined;
/** Default 20. */
max_results?: number | undefined;
/** Minimum cosine similarity of vector hits. */
min_similarity?: number | undefined;
/** Only documents that were indexed within this many days. */
recency_days?: number | undefined;
/** Conditions on document metadata. */
filter?: Record<string, unknown> | undefined;
/** How the score came about, if the search asked for it. */
explain?: boolean | undefined;
/** Whether to rerank. Default true in mode hybrid if the server has a reranker. */
rerank?: boolean | undefined;
/** A model for reranking, or an alias, that orders the results instead of the server’s reranker. */
rerank_model?: string | undefined;
/** Whether to return the positions of the query's words in each hit. */
highlights?: boolean | undefined;
/** Number of neighbouring chunks to return on either side of each hit. */
context?: number | undefined;
/** Returns only the best hit of each document. */
group_by?: 'document' | undefined;
/** Members of document metadata whose values to count. */
facets?: Array<string> | undefined;
/** Only sources of these types. */
source_types?: Array<string> | undefined;
};

export type SearchAgentKnowledgeResponse = {
/** The entries. */
data: Array<SearchHit>;
/** How many documents among the best 1,000 passages have each value; the 20 most frequent. */
facets?: Record<string, Array<{
/** The value. */
value: string | number | boolean;
/** How many there are. */
count: number;
}>> | undefined;
/** Why the query has no vector. The results are those of full-text search. */
vectors_unavailable?: string | undefined;
/** Why the results are not reranked. */
rerank_unavailable?: string | undefined;
/** How the score came about, if the search asked for it. */
explain?: Record<string, unknown> | undefined;
};

export type StartKnowledgeSyncRequest = {
/** `full`: everything is sent, and completing the sync deletes what was not. `changes`: only what changed since the last cursor. */
mode: 'full' | 'changes';
/** How long after its last batch another connector must wait to resume or replace it. Default 600. */
expires_in_seconds?: number | undefined;
/** Resume or replace a sync that has not expired. Its connector gets 409 from then on. */
take_over?: boolean | undefined;
};

/** One page of a list. */
export type KnowledgeSyncPage = Page & {
/** The entries. */
data: Array<KnowledgeSync>;
};

export type PutKnowledgeSyncBatchRequest = {
/** The fence that the sync was started or resumed with. */
fence: number;
/** New and changed documents. */
upserts?: Array<{
/** The id of the document where it comes from. It names one document of the source. */
external_id: string;
/** Its version. A change with a lower one than the stored document’s is skipped. */
order?: number | undefined;
/** The text. */
content?: {
/** The document: text, or its bytes in base64. */
data: string;
/** Default raw. */
data_encoding?: 'raw' | 'base64' | undefined;
/** The media type. */
content_type?: string | undefined;
/** The name of the file. */
filename?: string | undefined;
} | undefined;
/** The id (fil_…) of an uploaded file, instead of `content`. */
file?: string | undefined;
/** Display title. */
title?: string | undefined;
/** Free key-value map. Omitted, it becomes empty. */
metadata?: Record<string, unknown> | undefined;
/** Where a person finds the document. */
source_url?: string | undefined;
}> | undefined;
/** Deleted documents. */
deletes?: Array<{
/** The id of the document where it comes from. It names one document of the source. */
external_id: string;
/** Its version. A change with a lower one than the stored document’s is skipped. */
order?: number | undefined;
}> | undefined;
/** Where the connector continues after this batch. It is stored with the batch, and means nothing to the server. */
cursor?: string | null | undefined;
};

export type CompleteKnowledgeSyncRequest = {
/** The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync. */
fence?: number | undefined;
/** The number of batches that the connector sent. */
batches: number;
/** The number of upserts in them. */
documents: number;
/** Delete what was not seen even if it is more than half of the source. */
confirm_deletions?: boolean | undefined;
};

export type AbortKnowledgeSyncRequest = {
/** The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync. */
fence?: number | undefined;
};

/** One page of a list. */
export type KnowledgeDocumentVersionPage = Page & {
/** The entries. */
data: Array<KnowledgeDocumentVersion>;
};

export type RestoreKnowledgeSourceRequest = {
/** The time, as in `2026-03-01T12:00:00Z`. */
at: string;
/** Delete documents even if they are more than half of the source. */
confirm_deletions?: boolean | undefined;
};

export type CreateAutomationRequest = {
/** The name. */
name: string;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** A text for people. */
description?: string | null | undefined;
/** The name of the event that starts a run. */
trigger?: string | null | undefined;
/** A JSONata expression over the payload. The event starts a run only if it is true. */
filter?: string | null | undefined;
/** A cron expression with five fields. */
schedule?: string | null | undefined;
/** The time zone of the schedule, such as `Europe/Berlin`. Default UTC. */
timezone?: string | undefined;
/** A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null. */
workflow?: Record<string, unknown> | null | undefined;
/** JSON Schema that the payload of an invocation must match, or null. */
input_schema?: Record<string, unknown> | null | undefined;
/** Which callers may invoke it: end users, secret keys, or any. */
invoke_auth?: 'any' | 'secret_key' | 'user' | undefined;
/** The user (`usr_…`) as whom runs act. */
run_as_user?: string | null | undefined;
/** The agent (`agt_…`) as which runs act. */
run_as_agent?: string | null | undefined;
/** How many runs may be active at the same time. */
max_concurrent_runs?: number | null | undefined;
/** How many runs may wait for their turn. Beyond it, invocations are 429. */
max_pending_runs?: number | null | undefined;
/** Limits active runs with the same value in their payload. */
concurrency?: {
/** The path of a member of the payload, such as `customer.id`. */
key: string;
/** How many runs with the same value may be active at the same time. */
limit: number;
} | null | undefined;
/** How many runs may start in a time. The others wait for their turn. */
rate?: {
/** How many runs may start in this time. */
limit: number;
/** The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most. */
per: string;
/** The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one. */
key?: string | undefined;
} | null | undefined;
/** How many seconds a run may take. */
timeout_seconds?: number | null | undefined;
/** How long runs are kept after their end. Without it, as the app says. */
retention?: {
/** Days after their end for which completed and cancelled runs are kept. Default: no limit. */
days?: number | undefined;
/** How many completed and cancelled runs of each automation are kept, the newest. Default: no limit. */
runs?: number | undefined;
/** Days for which failed runs are kept. Default: `days`. */
failed_days?: number | undefined;
/** How many failed runs of each automation are kept, the newest. Default: `runs`. */
failed_runs?: number | undefined;
/** Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false. */
files?: boolean | undefined;
} | null | undefined;
/** Stored as given; replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
/** The type. */
type: 'trigger' | 'scheduled' | 'invoked';
/** The organisation (`org_…`). */
org?: string | undefined;
/** The team (`tea_…`). */
team?: string | undefined;
/** The user (`usr_…`). */
user?: string | undefined;
};

/** One page of a list. */
export type AutomationPage = Page & {
/** The entries. */
data: Array<Automation>;
};

export type UpdateAutomationRequest = {
/** The name. */
name?: string | undefined;
/** A name for programs, unique in the app or sandbox. */
lookup_key?: string | null | undefined;
/** A text for people. */
description?: string | null | undefined;
/** The name of the event that starts a run. */
trigger?: string | null | undefined;
/** A JSONata expression over the payload. The event starts a run only if it is true. */
filter?: string | null | undefined;
/** A cron expression with five fields. */
schedule?: string | null | undefined;
/** The time zone of the schedule, such as `Europe/Berlin`. Default UTC. */
timezone?: string | undefined;
/** A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null. */
workflow?: Record<string, unknown> | null | undefined;
/** JSON Schema that the payload of an invocation must match, or null. */
input_schema?: Record<string, unknown> | null | undefined;
/** Which callers may invoke it: end users, secret keys, or any. */
invoke_auth?: 'any' | 'secret_key' | 'user' | undefined;
/** The user (`usr_…`) as whom runs act. */
run_as_user?: string | null | undefined;
/** The agent (`agt_…`) as which runs act. */
run_as_agent?: string | null | undefined;
/** How many runs may be active at the same time. */
max_concurrent_runs?: number | null | undefined;
/** How many runs may wait for their turn. Beyond it, invocations are 429. */
max_pending_runs?: number | null | undefined;
/** Limits active runs with the same value in their payload. */
concurrency?: {
/** The path of a member of the payload, such as `customer.id`. */
key: string;
/** How many runs with the same value may be active at the same time. */
limit: number;
} | null | undefined;
/** How many runs may start in a time. The others wait for their turn. */
rate?: {
/** How many runs may start in this time. */
limit: number;
/** The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most. */
per: string;
/** The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one. */
key?: string | undefined;
} | null | undefined;
/** How many seconds a run may take. */
timeout_seconds?: number | null | undefined;
/** How long runs are kept after their end. Without it, as the app says. */
retention?: {
/** Days after their end for which completed and cancelled runs are kept. Default: no limit. */
days?: number | undefined;
/** How many completed and cancelled runs of each automation are kept, the newest. Default: no limit. */
runs?: number | undefined;
/** Days for which failed runs are kept. Default: `days`. */
failed_days?: number | undefined;
/** How many failed runs of each automation are kept, the newest. Default: `runs`. */
failed_runs?: number | undefined;
/** Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false. */
files?: boolean | undefined;
} | null | undefined;
/** Stored as given; replaces the whole map. */
metadata?: Record<string, unknown> | undefined;
};

export type CheckAutomationRequest = {
/** In YAML or JSON: the body of POST /automations, or a bare graph. */
text: string;
};

export type CheckAutomationResponse = {
/** With their position in the text, lines and columns from 1; empty when it is valid. */
problems: Array<{
/** The line, from 1. */
line: number;
/** The column, from 1. */
column: number;
/** The id of the node. */
node?: string | undefined;
/** A text for people. */
message: string;
}>;
};

/** One page of a list. */
export type ListAutomationRunsPage = Page & {
/** The entries. */
data: Array<AutomationRun>;
};

/** One page of a list. */
export type WorkflowVersionPage = Page & {
/** The entries. */
data: Array<WorkflowVersion>;
};

/** One page of a list. */
export type InvocableAutomationPage = Page & {
/** The entries. */
data: Array<InvocableAutomation>;
};

export type InvokeAutomationRequest = {
/** Available to the graph as `$`; validated against `input_schema`. */
payload?: Record<string, unknown> | undefined;
/** Values that expressions of the run can read as `$participants`. */
participants?: Record<string, string> | undefined;
/** The same key returns the first run again, for at least a day. */
idempotency_key?: string | undefined;
} | null;

export type RetryAutomationRunRequest = {
/** Keeps what the run did before this node, or with `failure` everything that it finished. Without it, the new run starts from the beginning with the current workflow. */
from?: 'failure' | {
/** The node that runs again; what follows it also does. */
node: string;
/** The `node_started` entry to continue from. Required if the node ran more than once. */
sequence?: number | undefined;
} | undefined;
/** Outputs, by node, that replace the kept ones. Only with `from`. */
outputs?: Record<string, unknown> | undefined;
/** The version of the workflow to continue with. By default the one of the old run. Only with `from`. */
workflow_version?: number | undefined;
/** Another payload, for a new run from the beginning. Only for runs of type invoked, and not with `from`. */
payload?: Record<string, unknown> | undefined;
} | null;

export type SignalAutomationRunRequest = {
/** The name. */
name: string;
/** The data that comes with it. */
payload?: unknown | undefined;
};

export type ClaimAutomationRunRequest = {
/** For how many seconds the claim is valid unless it is renewed. */
lease_seconds: number;
};

export type ReportAutomationRunRequest = {
/** The status. */
status: 'running' | 'completed' | 'failed';
/** What the run returned. */
result?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** The `claim` of the response to the claim. 409 `claim_lost` if the run was claimed again since. */
claim?: string | undefined;
};

export type ClaimAutomationWorkRequest = {
/** Ids or lookup keys of automations whose workflow is a program. */
automations: Array<string>;
/** The version of your code. A run that a version did not fit is not offered to it again. */
code_version: string;
/** The run may be claimed again this long after the last request with the claim. */
lease_seconds: number;
/** How long to wait for a run. By default, the response is sent immediately. */
wait_seconds?: number | undefined;
};

export type ReadClaimedJournalRequest = {
/** The claim, `clm_…`. Another claim on the run makes it invalid. */
claim: string;
/** The `after_cursor` of the page before. */
after_cursor: string;
};

export type AppendRunEntriesRequest = {
/** The claim, `clm_…`. Another claim on the run makes it invalid. */
claim: string;
/** The `sequence` of the last response. */
after_sequence: number;
/** One request may end a step and start the next. An empty list only renews the claim. */
entries: Array<{
/** The server itself writes all other entries. */
type: 'node_started' | 'node_completed' | 'node_failed' | 'run_completed' | 'run_failed';
/** The step: its scope, name and occurrence. Required for all `node_` entries. */
node_id?: string | undefined;
/** Of `node_started`: `step` is executed by the program; `value` is a recorded value; the server ends `sleep`, `signal`, `child` and `approve`. */
kind?: 'step' | 'value' | 'sleep' | 'signal' | 'child' | 'approve' | undefined;
/** For kind `step`. The server schedules the next attempt. */
retry?: {
/** Attempts in total, with the first one. */
max_attempts: number;
/** The pause before the second attempt. Default 1. */
initial_seconds?: number | undefined;
/** Multiplies each following pause. Default 2. */
factor?: number | undefined;
} | undefined;
/** For kind `sleep`. */
seconds?: number | undefined;
/** For kind `sleep`: an ISO 8601 time. */
until?: string | undefined;
/** For kind `signal`: the name of the signal. */
name?: string | undefined;
/** For kinds `signal` and `approve`: the step then fails with `timeout`. */
timeout_seconds?: number | undefined;
/** For kind `approve`: what people are asked. */
question?: string | undefined;
/** For kind `approve`: the JSON Schema of the answer. Default: `ok`, and an optional `comment`. */
form?: Record<string, unknown> | undefined;
/** For kind `approve`: ids of users. Each of them may answer. */
users?: Array<string> | undefined;
/** For kind `approve`: ids of teams. Each of their members may answer. */
teams?: Array<string> | undefined;
/** For kind `approve`: those who have one of these roles in `org` may answer. */
roles?: Array<'admin' | 'member' | 'viewer'> | undefined;
/** For kind `approve`: the organization of `roles`. Default: that of the automation. */
org?: string | undefined;
/** For kind `approve`: the user who invoked the run may not answer. */
exclude_invoker?: boolean | undefined;
/** For kind `child`: the id or lookup key of an invoked automation. */
automation?: string | undefined;
/** The output of a step, the result of the run, or the payload for a child run. */
payload?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** Of `node_failed`: false prevents further attempts. */
retryable?: boolean | undefined;
}>;
/** Ends the claim after these entries. The run is ready again when something has happened in it. */
release?: {
/** The code does not fit the journal: the run waits for another version of the code. */
workflow_changed?: {
/** What the journal has. */
expected: unknown;
/** What the code asked for instead. */
found: unknown;
} | undefined;
} | undefined;
/** Without entries and `release`: waits this long for an entry of the server. */
wait_seconds?: number | undefined;
};

export type ReadClaimedRunRequest = {
/** The version of your code, which its entries then name. */
code_version?: string | undefined;
/** The `after_cursor` of the page before. Without it: the beginning. */
after_cursor?: string | undefined;
};

export type AppendClaimedRunRequest = {
/** The `sequence` of the last response. */
after_sequence: number;
/** One request may end a step and start the next. An empty list only renews the claim. */
entries: Array<{
/** The server itself writes all other entries. */
type: 'node_started' | 'node_completed' | 'node_failed' | 'run_completed' | 'run_failed';
/** The step: its scope, name and occurrence. Required for all `node_` entries. */
node_id?: string | undefined;
/** Of `node_started`: `step` is executed by the program; `value` is a recorded value; the server ends `sleep`, `signal`, `child` and `approve`. */
kind?: 'step' | 'value' | 'sleep' | 'signal' | 'child' | 'approve' | undefined;
/** For kind `step`. The server schedules the next attempt. */
retry?: {
/** Attempts in total, with the first one. */
max_attempts: number;
/** The pause before the second attempt. Default 1. */
initial_seconds?: number | undefined;
/** Multiplies each following pause. Default 2. */
factor?: number | undefined;
} | undefined;
/** For kind `sleep`. */
seconds?: number | undefined;
/** For kind `sleep`: an ISO 8601 time. */
until?: string | undefined;
/** For kind `signal`: the name of the signal. */
name?: string | undefined;
/** For kinds `signal` and `approve`: the step then fails with `timeout`. */
timeout_seconds?: number | undefined;
/** For kind `approve`: what people are asked. */
question?: string | undefined;
/** For kind `approve`: the JSON Schema of the answer. Default: `ok`, and an optional `comment`. */
form?: Record<string, unknown> | undefined;
/** For kind `approve`: ids of users. Each of them may answer. */
users?: Array<string> | undefined;
/** For kind `approve`: ids of teams. Each of their members may answer. */
teams?: Array<string> | undefined;
/** For kind `approve`: those who have one of these roles in `org` may answer. */
roles?: Array<'admin' | 'member' | 'viewer'> | undefined;
/** For kind `approve`: the organization of `roles`. Default: that of the automation. */
org?: string | undefined;
/** For kind `approve`: the user who invoked the run may not answer. */
exclude_invoker?: boolean | undefined;
/** For kind `child`: the id or lookup key of an invoked automation. */
automation?: string | undefined;
/** The output of a step, the result of the run, or the payload for a child run. */
payload?: unknown | undefined;
/** Why it failed. */
error?: {
/** A stable code for programs. */
code: string;
/** A text for people. */
message: string;
} | undefined;
/** Of `node_failed`: false prevents further attempts. */
retryable?: boolean | undefined;
}>;
/** Ends the claim after these entries. The run is ready again when something has happened in it. */
release?: {
/** The code does not fit the journal: the run waits for another version of the code. */
workflow_changed?: {
/** What the journal has. */
expected: unknown;
/** What the code asked for instead. */
found: unknown;
} | undefined;
} | undefined;
/** Without entries and `release`: waits this long for an entry of the server. */
wait_seconds?: number | undefined;
};

export type ListAppSecretsResponse = {
/** The entries. */
data: Array<AppSecret>;
};

export type PutAppSecretRequest = {
/** The value. */
value: string;
};

/** One page of a list. */
export type ApprovalPage = Page & {
/** The entries. */
data: Array<Approval>;
};

export type AnswerApprovalRequest = {
/** The answer, which must match the form. */
data: unknown;
};

export type CreateApprovalLinkRequest = {
/** To whom you send the link, as the journal will name its holder. */
to: string;
/** Default 7 days. */
expires_in_seconds?: number | undefined;
};

export type AnswerLinkedApprovalRequest = {
/** The answer, which must match the form. */
data: unknown;
};

export type EmitEventRequest = {
/** The name. */
name: string;
/** The data that comes with it. */
payload?: unknown | undefined;
};

export type EmitEventResponse = {
/** evt_… */
id: string;
/** The name. */
name: string;
};

export type VerifyCitationsRequest = {
/** A text from anywhere. What stands in quotation marks, and blocks of lines with >, are its quotes: at most 50. */
text?: string | undefined;
/** The quotes themselves, without quotation marks. Exactly one of `text` and `quotes`. */
quotes?: Array<string> | undefined;
/** cdo_…; only these documents. In `text`, [1] cites the first of them. Not with `sources` or `agent`. */
documents?: Array<string> | undefined;
/** Which versions of `documents` to read. By default, the current ones. */
versions?: Array<{
/** cdo_…; one of `documents`. */
document: string;
/** The number of its version. */
version: number;
}> | undefined;
/** cso_…; only these sources. By default, everything that the caller may read. */
sources?: Array<string> | undefined;
/** agt_… or the lookup key of the agent; only its sources. Not with `sources`. */
agent?: string | undefined;
/** Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false. */
boxes?: boolean | undefined;
};

export type CreateAnswerRequest = {
/** The question. */
query: string;
/** cso_…; only these sources. By default, everything that the caller may read. */
sources?: Array<string> | undefined;
/** agt_… or the lookup key of the agent; only its sources. Not with `sources`. */
agent?: string | undefined;
/** A model or an alias of the app or of the operator. By default, the default of the operator. */
model?: string | undefined;
/** More for the model, such as a tone or a length. */
instructions?: string | undefined;
/** What happens to a sentence that cites nothing, misquotes, or is not supported in the verdict of a judge: it is marked (the default), it is removed, or there is no answer. */
unsupported?: 'mark' | 'remove' | 'refuse' | undefined;
/** The number of passages that the model reads. Default 12. */
max_results?: number | undefined;
/** The most that the model writes. Default 1024. */
max_output_tokens?: number | undefined;
/** Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false. */
boxes?: boolean | undefined;
/** Sends events instead (text/event-stream): `delta` with text as it arrives (only with `mark`), `sentence` with each sentence after its check (with a judge, after its verdict, up to eight together), then `answer` with the whole answer, or `error`. */
stream?: boolean | undefined;
};

/** A message to a webhook about an event of Quarry. */
export type WebhookMessage = FileCreatedMessage | FileUpdatedMessage | ExtractionCompletedMessage | ExtractionFailedMessage | IngestionSucceededMessage | IngestionFailedMessage | KnowledgeSourceCreatedMessage | KnowledgeSourceUpdatedMessage | KnowledgeSourceDeletedMessage | AutomationRunCompletedMessage | AutomationRunFailedMessage | ApprovalRequestedMessage | ApprovalAnsweredMessage | ModelBudgetReachedMessage | AutomationRunReadyMessage | WebhookTestMessage;
