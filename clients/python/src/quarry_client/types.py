# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired
elif sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    # For programs that read the annotations. Older versions of Python have no word for a member that may be missing.
    NotRequired = Optional



class Grant(TypedDict):
    """What one principal may do with a file."""

    principal_type: Literal["user", "team", "org", "org_role", "agent", "everyone"]
    """The kind of principal."""
    principal: NotRequired[str]
    """An id, or the role for `org_role`. Omit it for `everyone`."""
    actions: List[str]
    """What the principal may do."""



class GrantRemoval(TypedDict):
    """A principal whose grant is removed."""

    principal_type: Literal["user", "team", "org", "org_role", "agent", "everyone"]
    """The kind of principal."""
    principal: NotRequired[str]
    """An id, or the role for `org_role`. Omit it for `everyone`."""



class ImageSource(TypedDict):
    """An image and where to fetch it."""

    file: NotRequired[str]
    """The file (`fil_…`)."""
    url: NotRequired[str]
    """The URL."""
    refresh_url: NotRequired[str]
    """Where to get a new `url` after this one has expired."""
    mime_type: NotRequired[str]
    """The media type."""
    width: NotRequired[int]
    """The width in pixels."""
    height: NotRequired[int]
    """The height in pixels."""



class AclInput(TypedDict):
    """Either `grants`, which replaces the list, or `add` and `remove`, which change it."""

    grants: NotRequired[List[Grant]]
    """Who may do what: the whole list."""
    add: NotRequired[List[Grant]]
    """Grants to add, or to merge with those of the same principal."""
    remove: NotRequired[List[GrantRemoval]]
    """Principals whose grants are removed."""



class Picture(TypedDict):
    """An image to store."""

    data: str
    """The image in base64."""
    filename: str
    """The filename with its extension."""
    mime_type: str
    """image/…"""



class KnowledgeDocumentVersion(TypedDict):
    """What a document was at a time."""

    document: str
    """cdo_…"""
    source: str
    """cso_…"""
    version: int
    """Its number. The first version of a document is 1."""
    current: bool
    """Whether the document is so now."""
    title: NotRequired[str]
    """The title then."""
    metadata: Dict[str, Any]
    """The metadata then."""
    content_type: NotRequired[str]
    """The media type of what it was read from."""
    content_hash: str
    """The SHA-256 of its text, in hexadecimal."""
    total_lines: int
    """The lines of its text."""
    total_size: int
    """The bytes of its text."""
    source_url: NotRequired[str]
    """Where it came from."""
    external_id: NotRequired[str]
    """Its id where it came from."""
    created_at: str
    """When it became the current version."""
    replaced_at: NotRequired[str]
    """When the next version replaced it."""
    deleted_at: NotRequired[str]
    """When the document was deleted, if that ended this version."""



class AnswerSentenceQuotesPlacesBoxes(TypedDict):
    page: int
    """The page, from 1."""
    left: float
    """In points from the left edge of the page as it is shown."""
    top: float
    """In points from the upper edge."""
    right: float
    """In points from the left edge."""
    bottom: float
    """In points from the upper edge."""
    page_width: float
    """The width of the page in points."""
    page_height: float
    """Its height."""



class AnswerSentenceQuotesPlaces(TypedDict):
    start_byte: int
    """Where it begins in the text of the document."""
    end_byte: int
    """Where it ends; exclusive."""
    start_page: NotRequired[int]
    """Present if the text has page marks."""
    end_page: NotRequired[int]
    """Its last page."""
    text: str
    """What the document says there."""
    boxes: NotRequired[List[AnswerSentenceQuotesPlacesBoxes]]
    """With `boxes`: where it stands on the pages of the PDF, one rectangle for each line; empty if unknown."""



class AnswerSentenceQuotesDifference(TypedDict):
    type: Literal["same", "only_in_quote", "only_in_source"]
    """Who has these words."""
    text: str
    """The words."""



class AnswerSentenceQuotes(TypedDict):
    text: str
    """The quote."""
    start: NotRequired[int]
    """Where it begins in `text`, in UTF-16 code units."""
    end: NotRequired[int]
    """Where it ends; exclusive."""
    status: Literal["exact", "normalised", "elided", "altered", "not_found", "too_short"]
    """`exact`: the document has these characters. `normalised`: it differs in white space, quotation marks, dashes, hyphens at line ends, the pipes of tables or emphasis, never in case, digits or words. `elided`: its parts stand in this order under one heading. `altered`: the document says something similar, see `difference`. `not_found`: in no document that the caller may read. `too_short`: under three words."""
    document: NotRequired[str]
    """cdo_…; the document that says this, or something similar."""
    source: NotRequired[str]
    """cso_…"""
    title: NotRequired[str]
    """The title of the document."""
    content_hash: NotRequired[str]
    """The version of the document: the SHA-256 of its text, in hexadecimal."""
    version: NotRequired[int]
    """The version of the document. Absent if its source keeps none."""
    places: NotRequired[List[AnswerSentenceQuotesPlaces]]
    """One, or one for each part of an elided quote."""
    difference: NotRequired[List[AnswerSentenceQuotesDifference]]
    """Only if `altered`: the words of the quote and of the document, in their order."""
    citation: NotRequired[int]
    """The number of the citation that it stands in."""



class AnswerSentence(TypedDict):
    """A sentence of an answer, with what was checked."""

    text: str
    """The sentence."""
    start: int
    """Where it begins in the text of the answer, in UTF-16 code units."""
    end: int
    """Where it ends; exclusive."""
    status: Literal["supported", "quoted", "cited", "uncited"]
    """`supported`: the judge says that the passages support it. Otherwise `quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a passage. `uncited`: neither."""
    unsupported: bool
    """Whether it cites nothing, has a quote that is altered or missing, or is not supported in the verdict of the judge."""
    verdict: NotRequired[Literal["supported", "not_supported"]]
    """Of the judge, if the operator has set one and it ruled on this sentence."""
    citations: List[int]
    """The numbers of the passages that it cites."""
    quotes: List[AnswerSentenceQuotes]
    """Its quotes, in their order."""



class Citation(TypedDict):
    """A passage that an answer cites or quotes."""

    number: int
    """The number by which the text cites it, as in [1]."""
    document: str
    """cdo_…"""
    source: str
    """cso_…"""
    chunk: str
    """cim_…; the passage."""
    content_hash: str
    """The version of the document: the SHA-256 of its text."""
    version: NotRequired[int]
    """The version of the document. Absent if its source keeps none."""
    title: NotRequired[str]
    """The title of the document."""
    source_url: NotRequired[str]
    """Where the document comes from."""
    fragment: NotRequired[str]
    """Leads to the heading on the page at `source_url`."""
    heading_path: List[str]
    """The headings above the passage."""
    start_byte: int
    """Where the passage begins in the text of the document."""
    end_byte: int
    """Where it ends; exclusive."""
    start_line: int
    """Its first line, from 1."""
    end_line: int
    """Its last line."""
    start_page: NotRequired[int]
    """Present if the text has page marks."""
    end_page: NotRequired[int]
    """Its last page."""
    content: str
    """The passage."""



class GenerationPart(TypedDict):
    """The data of `generation_started`, `generation_text` and `generation_ended`."""

    node_id: str
    """The node that calls the model."""
    command_id: str
    """The command of the journal."""
    attempt: int
    """The attempt of the command."""
    text: NotRequired[str]
    """The next part of the text. Only in `generation_text`."""



class StreamPosition(TypedDict):
    """The data of the events `ready` and `reset`."""

    position: int
    """The position in the stream."""
    message: NotRequired[str]
    """Why events are missing. Only in `reset`."""



class AutomationRunSummaryError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""
    node_id: NotRequired[str]
    """The id of the node."""



class AutomationRunSummaryWaitingForWorkflowChanged(TypedDict):
    """Why the last worker could not continue the run."""

    expected: Any
    """The step that the journal has."""
    found: Any
    """What the code asked for instead."""



class AutomationRunSummaryWaitingFor(TypedDict):
    """What the run waits for; absent if it does not wait."""

    kind: Literal["approval", "signal", "child", "time", "retry", "worker"]
    """People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far."""
    node_id: NotRequired[str]
    """The node that waits."""
    approval: NotRequired[str]
    """The approval (`apr_…`)."""
    name: NotRequired[str]
    """The name of the signal."""
    id: NotRequired[str]
    """The child: a run, an extraction or an ingestion."""
    until: NotRequired[str]
    """When the wait ends at the latest."""
    others: NotRequired[int]
    """The number of other nodes that also wait."""
    workflow_changed: NotRequired[AutomationRunSummaryWaitingForWorkflowChanged]
    """Why the last worker could not continue the run."""



class AutomationRunSummaryPendingFor(TypedDict):
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""

    limit: Literal["max_concurrent_runs", "concurrency", "rate"]
    """The limit of the automation that delays the run."""
    until: NotRequired[str]
    """When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further."""
    ahead: int
    """The number of runs that start before it, counted up to 10,000."""



class AutomationRunSummary(TypedDict):
    """A run in the list of all runs, without payload and result."""

    id: str
    """atr_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    automation: str
    """The automation (`aut_…`)."""
    type: Literal["trigger", "scheduled", "invoked"]
    """The type."""
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    """The status."""
    error: NotRequired[AutomationRunSummaryError]
    """Why it failed."""
    event_id: NotRequired[str]
    """The id (`evt_…`) of the event that started it."""
    invoked_by: NotRequired[str]
    """The user or agent; absent for schedules, events and keys."""
    retried_from: NotRequired[str]
    """The run (`atr_…`) that it repeats."""
    parent_run: NotRequired[str]
    """The run (`atr_…`) that started it."""
    workflow_version: NotRequired[int]
    """The version of the graph that the run started with; absent without one."""
    waiting_for: NotRequired[AutomationRunSummaryWaitingFor]
    """What the run waits for; absent if it does not wait."""
    pending_for: NotRequired[AutomationRunSummaryPendingFor]
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    lease_until: NotRequired[str]
    """When the claim of the worker expires, in ISO 8601."""
    started_at: NotRequired[str]
    """When it started, in ISO 8601."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""
    automation_name: str
    """The name of the automation."""
    waiting: bool
    """Whether the run is in progress but only waits for a time, a signal or a child run."""



class WorkflowJournal(TypedDict):
    id: str
    """wde_…"""
    status: Literal["pending", "running", "waiting", "completed", "failed", "cancelled"]
    """The status."""
    current_sequence: int
    """The sequence of the newest entry."""
    started_at: NotRequired[str]
    """When it started, in ISO 8601."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class WorkflowJournalEntry(TypedDict):
    """One step in the history of a run."""

    id: str
    """wdr_…"""
    sequence: int
    """Its number, from 1."""
    type: str
    """What happened, such as `node_completed`."""
    node_id: NotRequired[str]
    """The id of the node."""
    command_id: NotRequired[str]
    """Identifies one execution of a node, the same for each of its attempts."""
    timer_id: NotRequired[str]
    """Identifies the timer that the entry is about."""
    record: Dict[str, Any]
    """What the entry records."""
    created_at: str
    """When it was created, in ISO 8601."""



class AppSecret(TypedDict):
    """A value for `$secrets` in graphs; it cannot be read back."""

    name: str
    """The name."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class AutomationRunError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""
    node_id: NotRequired[str]
    """The id of the node."""



class AutomationRunWaitingForWorkflowChanged(TypedDict):
    """Why the last worker could not continue the run."""

    expected: Any
    """The step that the journal has."""
    found: Any
    """What the code asked for instead."""



class AutomationRunWaitingFor(TypedDict):
    """What the run waits for; absent if it does not wait."""

    kind: Literal["approval", "signal", "child", "time", "retry", "worker"]
    """People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far."""
    node_id: NotRequired[str]
    """The node that waits."""
    approval: NotRequired[str]
    """The approval (`apr_…`)."""
    name: NotRequired[str]
    """The name of the signal."""
    id: NotRequired[str]
    """The child: a run, an extraction or an ingestion."""
    until: NotRequired[str]
    """When the wait ends at the latest."""
    others: NotRequired[int]
    """The number of other nodes that also wait."""
    workflow_changed: NotRequired[AutomationRunWaitingForWorkflowChanged]
    """Why the last worker could not continue the run."""



class AutomationRunPendingFor(TypedDict):
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""

    limit: Literal["max_concurrent_runs", "concurrency", "rate"]
    """The limit of the automation that delays the run."""
    until: NotRequired[str]
    """When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further."""
    ahead: int
    """The number of runs that start before it, counted up to 10,000."""



class AutomationRun(TypedDict):
    """One run of an automation."""

    id: str
    """atr_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    automation: str
    """The automation (`aut_…`)."""
    type: Literal["trigger", "scheduled", "invoked"]
    """The type."""
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    """The status."""
    payload: NotRequired[Any]
    """The data that comes with it."""
    participants: NotRequired[Dict[str, str]]
    """Values that expressions of the run can read as `$participants`."""
    result: NotRequired[Any]
    """What the run returned."""
    error: NotRequired[AutomationRunError]
    """Why it failed."""
    event_id: NotRequired[str]
    """The id (`evt_…`) of the event that started it."""
    invoked_by: NotRequired[str]
    """The user or agent; absent for schedules, events and keys."""
    retried_from: NotRequired[str]
    """The run (`atr_…`) that it repeats."""
    parent_run: NotRequired[str]
    """The run (`atr_…`) that started it."""
    workflow_version: NotRequired[int]
    """The version of the graph that the run started with; absent without one."""
    waiting_for: NotRequired[AutomationRunWaitingFor]
    """What the run waits for; absent if it does not wait."""
    pending_for: NotRequired[AutomationRunPendingFor]
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    lease_until: NotRequired[str]
    """When the claim of the worker expires, in ISO 8601."""
    started_at: NotRequired[str]
    """When it started, in ISO 8601."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class User(TypedDict):
    """An end user of an app."""

    id: str
    """usr_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    email: NotRequired[str]
    """The email address."""
    name: NotRequired[str]
    """The name."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    org_name: NotRequired[str]
    """The name of the organisation."""
    org_role: NotRequired[Literal["admin", "member", "viewer"]]
    """The role in the organisation."""
    is_system_user: bool
    """Whether the user stands for a program instead of a person."""
    groups_overage: NotRequired[Literal[True]]
    """The last token of an issuer left out the groups of the user, because there are too many. It grants none."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class AppRunRetention(TypedDict):
    """How long runs of automations without `retention` are kept after their end. Absent in lists, and if they are kept for ever."""

    days: NotRequired[int]
    """Days after their end for which completed and cancelled runs are kept. Default: no limit."""
    runs: NotRequired[int]
    """How many completed and cancelled runs of each automation are kept, the newest. Default: no limit."""
    failed_days: NotRequired[int]
    """Days for which failed runs are kept. Default: `days`."""
    failed_runs: NotRequired[int]
    """How many failed runs of each automation are kept, the newest. Default: `runs`."""
    files: NotRequired[bool]
    """Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false."""



class App(TypedDict):
    """A tenant. Every other resource belongs to an app."""

    id: str
    """dap_…"""
    name: str
    """The name."""
    run_retention: NotRequired[AppRunRetention]
    """How long runs of automations without `retention` are kept after their end. Absent in lists, and if they are kept for ever."""
    assistants: NotRequired[bool]
    """`false` if no assistant may connect to the app by OAuth. Absent if they may, and in lists."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class Erasure(TypedDict):
    """An order to erase a user, a document or a source, and what was deleted so far."""

    id: str
    """ers_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    user: NotRequired[str]
    """usr_…"""
    document: NotRequired[str]
    """cdo_…"""
    source: NotRequired[str]
    """cso_…"""
    files: bool
    """Whether files of documents are erased too."""
    status: Literal["running", "done"]
    """`done`: the certificate can be read."""
    removed: Dict[str, int]
    """How many of each kind were deleted, such as documents, chunks, postings, vectors, files and runs."""
    created_at: str
    """When the erasure was ordered."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""



class LoggedEvent(TypedDict):
    """The data of the event `event`."""

    id: str
    """The event (`evt_…`)."""
    type: str
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: Any
    """The payload, as in the message to a webhook."""



class StoredFileAcl(TypedDict):
    """Who may read and change it, apart from its owner."""

    grants: List[Grant]
    """Who may do what: the whole list."""



class StoredFile(TypedDict):
    """A stored file."""

    id: str
    """fil_…"""
    filename: str
    """The name of the file."""
    content_type: str
    """The media type."""
    size: int
    """The size in bytes."""
    checksum: str
    """SHA-256 of the contents, in hex."""
    url: str
    """Signed download URL, valid for one hour."""
    picture_url: NotRequired[str]
    """Signed URL of a small picture, if the request asked for one and the type has one."""
    share_url: NotRequired[str]
    """Public URL that works while sharing is on."""
    shared: bool
    """Whether the public URL of the picture works."""
    image_source: NotRequired[ImageSource]
    app: str
    """The app (`dap_…`) that it belongs to."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    acl: NotRequired[StoredFileAcl]
    """Who may read and change it, apart from its owner."""
    provider_metadata: Dict[str, Any]
    """A free key-value map for the program that stored the file."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ExtractionOutputError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class ExtractionOutputOcr(TypedDict):
    """The pages whose text was recognised by OCR."""

    pages: List[int]
    """The page numbers, from 1."""
    confidence: float
    """The mean confidence of the recognised characters, from 0 to 1."""



class ExtractionOutputSpans(TypedDict):
    path: str
    """The JSON Pointer of the value in data."""
    start: int
    """The start."""
    end: int
    """The end of the value (exclusive)."""



class ExtractionOutputDataError(TypedDict):
    """Why there is no data."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class ExtractionOutput(TypedDict):
    """The text of one document or page."""

    id: str
    """exo_…"""
    ordinal: int
    """The position of the output, from 0."""
    source_url: NotRequired[str]
    """The address of the page or document."""
    state: Literal["done", "failed"]
    """The state."""
    error: NotRequired[ExtractionOutputError]
    """Why it failed."""
    title: NotRequired[str]
    """The title."""
    metadata: Dict[str, Any]
    """Metadata stated in the source."""
    page_type: NotRequired[Literal["article", "documentation", "service", "forum", "collection", "listing", "product"]]
    """The kind of web page."""
    structured: NotRequired[Dict[str, str]]
    """Structured data of a web page about its subject, unchanged: type, name, author, published, modified, price, currency, availability, rating, …"""
    ocr: NotRequired[ExtractionOutputOcr]
    """The pages whose text was recognised by OCR."""
    truncated: NotRequired[bool]
    """The document or page exceeds a limit, and the rest was not read."""
    file: NotRequired[StoredFile]
    data: NotRequired[Any]
    """With a schema: the data, valid against it. For pages of a site and attachments, it is only in data_file."""
    spans: NotRequired[List[ExtractionOutputSpans]]
    """Positions of the values of data in the Markdown, in UTF-16 code units. A value that does not occur there has no span."""
    data_file: NotRequired[StoredFile]
    data_error: NotRequired[ExtractionOutputDataError]
    """Why there is no data."""
    created_at: str
    """When it was created, in ISO 8601."""



class ReadGrant(TypedDict):
    """Somebody among the readers of a source who sees a document."""

    principal_type: Literal["user", "team", "group", "org", "org_role", "agent", "everyone"]
    """`org_role`: a role in the organisation of the source. `everyone`: every reader of the source."""
    principal: NotRequired[str]
    """An id, or the role for `org_role`. Omit it for `everyone`."""
    actions: NotRequired[List[Literal["read"]]]
    """Only `read`, the default."""



class ReadGrantRemoval(TypedDict):
    """Whose grant is removed."""

    principal_type: Literal["user", "team", "group", "org", "org_role", "agent", "everyone"]
    """`org_role`: a role in the organisation of the source. `everyone`: every reader of the source."""
    principal: NotRequired[str]
    """An id, or the role for `org_role`. Omit it for `everyone`."""



class DocumentAcl(TypedDict):
    """Who among the readers of the source sees the document. Developers and secret keys always do. Without it, every reader does."""

    grants: List[ReadGrant]
    """Who may do what: the whole list."""



class SearchHitHighlights(TypedDict):
    start: int
    """The start of the match in `content`, in UTF-16 code units."""
    end: int
    """The end of the match (exclusive)."""
    start_byte: int
    """The start of the match in the document's text, in bytes."""
    end_byte: int
    """The byte of the text at which it ends, exclusive."""



class SearchHitContext(TypedDict):
    """The hit and its neighbours as one passage of the document."""

    content: str
    """The text."""
    start_line: int
    """Its first line, from 1."""
    end_line: int
    """Its last line, from 1."""
    start_byte: int
    """The byte of the text at which it starts, from 0."""
    end_byte: int
    """The byte of the text at which it ends, exclusive."""
    start_page: NotRequired[int]
    """Present if the text has page marks."""
    end_page: NotRequired[int]
    """Its last page, if the text has page marks."""



class SearchHit(TypedDict):
    """A passage and its position."""

    id: str
    """cim_…"""
    kind: Literal["chunk"]
    """The kind."""
    content: str
    """The text."""
    content_type: NotRequired[str]
    """The media type."""
    raw_content: Dict[str, Any]
    """The headings above the passage (`heading_path`), and its position."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    type: str
    """The type of the source."""
    document: str
    """The id of the document."""
    source: str
    """The knowledge source (`cso_…`)."""
    title: NotRequired[str]
    """The title."""
    source_url: NotRequired[str]
    """The address of the page or document."""
    fragment: NotRequired[str]
    """For a web page: the fragment of its address that leads to the heading, without `#`."""
    version: NotRequired[int]
    """The version of the document. Absent if its source keeps none."""
    start_line: int
    """Its first line, from 1."""
    end_line: int
    """Its last line, from 1."""
    start_byte: int
    """The byte of the text at which it starts, from 0."""
    end_byte: int
    """The byte of the text at which it ends, exclusive."""
    start_page: NotRequired[int]
    """Present if the text has page marks."""
    end_page: NotRequired[int]
    """Its last page, if the text has page marks."""
    score: float
    """How well it matches: higher is better. Scores of different searches cannot be compared."""
    created_at: str
    """When it was created, in ISO 8601."""
    highlights: NotRequired[List[SearchHitHighlights]]
    """Where the words of the query are in `content`."""
    context: NotRequired[SearchHitContext]
    """The hit and its neighbours as one passage of the document."""
    explain: NotRequired[Dict[str, Any]]
    """How the score came about, if the search asked for it."""



class KvPut(TypedDict):
    """The data of the event `put`."""

    user: str
    """The owner of the entry."""
    key: str
    """The key of the entry."""
    value: Optional[str]
    """The value; null if it has over 64 KiB and has already been overwritten."""
    created_at: str
    """When the key was first written."""
    updated_at: str
    """When the value was last written."""
    expires_at: NotRequired[str]
    """When the entry expires. Absent if it does not."""
    etag: str
    """The entity tag of the entry."""



class KvRemoval(TypedDict):
    """The data of the events `delete` and `expire`."""

    user: str
    """The owner of the entry."""
    key: str
    """The key of the entry."""



class KvListEntry(TypedDict):
    """An entry in a list. Includes the user for developers and secret keys."""

    user: str
    """The owner of the entry."""
    key: str
    """The key of the entry."""
    value: str
    """The value."""
    created_at: str
    """When the key was first written."""
    updated_at: str
    """When the value was last written."""
    expires_at: NotRequired[str]
    """When the entry expires. Absent if it does not."""
    user_email: NotRequired[str]
    """The email address of the user."""
    user_name: NotRequired[str]
    """The name of the user."""



class KvEntry(TypedDict):
    """A string stored under a key for one user."""

    user: str
    """The owner of the entry."""
    key: str
    """The key of the entry."""
    value: str
    """The value."""
    created_at: str
    """When the key was first written."""
    updated_at: str
    """When the value was last written."""
    expires_at: NotRequired[str]
    """When the entry expires. Absent if it does not."""



class KvBatchResult(TypedDict):
    """The result of one operation of a batch."""

    op: str
    """What the operation did."""
    key: str
    """The key of the entry."""
    entry: NotRequired[Optional[KvEntry]]
    """The entry after the operation."""
    etag: NotRequired[str]
    """The state of the entry, for `if_match`."""
    deleted: NotRequired[bool]
    """For a delete: whether the entry existed."""



class ErrorErrorFields(TypedDict):
    field: str
    """The name of the member; nested names are joined with dots."""
    message: str
    """What is wrong and what to do, for people."""



class ErrorError(TypedDict):
    """Why it failed."""

    type: str
    """The group of errors that the code belongs to."""
    code: Union[Literal["invalid_json", "invalid_cursor", "invalid_path", "user_required", "unauthenticated", "invalid_credentials", "expired_token", "app_scope_required", "forbidden", "not_found", "request_timeout", "method_not_allowed", "conflict", "claim_lost", "request_in_progress", "rewind_refused", "precondition_failed", "payload_too_large", "unsupported_media_type", "range_not_satisfiable", "locked", "headers_too_large", "invalid_parameters", "idempotency_key_reused", "already_exists", "file_too_large", "unsupported_content", "needs_browser", "extraction_failed", "not_an_image", "quota_exceeded", "token_budget_exceeded", "rate_limited", "checksum_mismatch", "internal_error", "not_implemented", "upstream_failed", "unavailable", "timeout"], str]
    """A stable code for programs; docs/errors.md explains each. Later releases may add codes."""
    message: str
    """What is wrong and what to do, for people."""
    fields: List[ErrorErrorFields]
    """The members of the request that are invalid."""
    details: Dict[str, Any]
    """More about the error, for programs."""



class Error(TypedDict):
    """Why the request was refused or failed, for programs (`code`) and people (`message`)."""

    error: ErrorError
    """Why it failed."""



class Sandbox(TypedDict):
    """A copy of the app with its own data, isolated from production."""

    id: str
    """sbx_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    name: str
    """The name."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ApiKey(TypedDict):
    """A secret key acts for the whole app; a publishable key only names it."""

    id: str
    """dak_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    type: Literal["secret", "publishable"]
    """The type."""
    name: NotRequired[str]
    """The name."""
    hint: str
    """The first characters of the key."""
    full_key: NotRequired[str]
    """The key itself. Returned only in the response that creates it."""
    created_at: str
    """When it was created, in ISO 8601."""
    last_used_at: NotRequired[str]
    """Accurate to a few seconds."""
    revoked_at: NotRequired[str]
    """When it was revoked, in ISO 8601."""
    expires_at: NotRequired[str]
    """The key stops working at this time."""
    scopes: NotRequired[List[Literal["read", "files", "extractions", "knowledge", "automations", "kv", "webhooks", "people", "app", "files:read", "extractions:read", "knowledge:read", "automations:read", "kv:read", "webhooks:read", "people:read", "app:read"]]]
    """Absent if the key may do everything."""



class UsageFileBytes(TypedDict):
    """Bytes of files and of learned search models."""

    used: int
    """Current usage."""
    limit: Optional[int]
    """The limit, or null if there is none."""



class UsageDocuments(TypedDict):
    """Knowledge documents."""

    used: int
    """Current usage."""
    limit: Optional[int]
    """The limit, or null if there is none."""



class UsagePages(TypedDict):
    """Pages extracted or pulled today."""

    used: int
    """Current usage."""
    limit: Optional[int]
    """The limit, or null if there is none."""
    resets_at: str
    """When the day (UTC) ends and the count starts at 0 again."""



class UsageTokens(TypedDict):
    """Tokens of the language model used today, including those reserved by requests in progress."""

    used: int
    """Current usage."""
    limit: Optional[int]
    """The limit, or null if there is none."""
    resets_at: str
    """When the day (UTC) ends and the count starts at 0 again."""



class UsageSandboxes(TypedDict):
    """Sandboxes, counted in production."""

    used: int
    """Current usage."""
    limit: Optional[int]
    """The limit, or null if there is none."""



class Usage(TypedDict):
    """The usage and quotas of an app, in production or in one sandbox."""

    file_bytes: UsageFileBytes
    """Bytes of files and of learned search models."""
    documents: UsageDocuments
    """Knowledge documents."""
    pages: UsagePages
    """Pages extracted or pulled today."""
    tokens: UsageTokens
    """Tokens of the language model used today, including those reserved by requests in progress."""
    sandboxes: UsageSandboxes
    """Sandboxes, counted in production."""



class SetAsideJob(TypedDict):
    """A background job that failed too often, or crashed even in a separate process, and is no longer retried."""

    id: str
    """job_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    task: str
    """What the job does, such as `crawl`, `ingest` or `advance_run`."""
    about: NotRequired[str]
    """The id of the run, extraction, ingestion, source or event that waits for the job."""
    reason: str
    """Why its last attempt failed."""
    attempts: int
    """The number of attempts."""
    crashes: int
    """How often its process died while the job was active, or the job threw an uncaught exception."""
    set_aside_at: str
    """When it was set aside, in ISO 8601."""



class AuditEntryActor(TypedDict):
    """Who made the request."""

    kind: Literal["user", "secret_key", "publishable_key", "developer", "inbound_url"]
    """The kind."""
    id: str
    """usr_…, dak_…, dva_…, or cso_… for the source of an inbound URL."""



class AuditEntry(TypedDict):
    """One change: who made it, what it was, and how it ended."""

    id: str
    """aud_…"""
    at: str
    """When it happened, in ISO 8601."""
    actor: AuditEntryActor
    """Who made the request."""
    credential: str
    """The kind of credential: user (an access token), personal_token, secret_key, publishable_key, developer_token, session (of the console), upload_link or inbound_url."""
    action: str
    """The operation, such as createKey."""
    method: str
    """The HTTP method."""
    route: str
    """The path, with names in place of ids."""
    resource: NotRequired[str]
    """The id of the resource created, changed or named."""
    status: Optional[int]
    """The status of the response; null while the request is in progress, or when the server stopped before responding."""
    request_id: str
    """The id of the request, as in `X-Request-Id`."""
    address: NotRequired[str]
    """Where the request came from."""
    attempts: NotRequired[int]
    """The number of similar failed attempts within one minute that the entry represents."""



class CredentialUse(TypedDict):
    """The use of one credential on one day."""

    credential: str
    """usr_…, dak_… or tok_…"""
    kind: Literal["user", "secret_key", "publishable_key", "personal_token", "developer_token"]
    """The kind."""
    day: str
    """The day (UTC)."""
    first_at: str
    """When it was first used, in ISO 8601."""
    last_at: str
    """When it was last used, in ISO 8601."""
    requests: int
    """The number of requests."""
    refused: int
    """Requests among them that returned 401, 403 or 429; for a publishable key, failed sign-ins."""



class LedgerHead(TypedDict):
    """A segment with everything that its signature covers. The guide "Verify" describes the bytes."""

    app: str
    """dap_…"""
    sandbox: str
    """sbx_…"""
    segment: int
    """The number of the segment, from 1."""
    kind: Literal["start", "audit", "runs", "retention", "deletion"]
    """The kind."""
    sealed_at: str
    """When it was sealed, in UTC with microseconds."""
    records: int
    """The number of records that it lists."""
    last_at: Optional[str]
    """The time of the newest record."""
    list_digest: str
    """The digest of its list of records, in hexadecimal."""
    detail: Optional[str]
    """What retention or a deletion removes, as JSON text."""
    previous: str
    """The digest of the previous segment, in hexadecimal."""
    key_id: str
    """The id of the key that signed it."""
    public_key: str
    """The public key, an Ed25519 key of 32 bytes, in hexadecimal."""
    signature: str
    """Ed25519 over the fields above, in hexadecimal."""
    digest: str
    """The SHA-256 of the fields above, in hexadecimal."""



class LedgerVerificationProblems(TypedDict):
    kind: Literal["changed", "removed", "inserted", "moved", "segment_changed", "segment_removed", "signature", "head", "truncated"]
    """The kind."""
    chain: str
    """The ledger or the journal of a run."""
    record: NotRequired[str]
    """The id of the record; for a journal, the sequence."""
    segment: NotRequired[int]
    """The number of the segment, from 1."""
    message: str
    """A text for people."""



class LedgerVerificationCounts(TypedDict):
    """What was checked."""

    segments: int
    """The number of segments."""
    records: int
    """The number of records."""
    runs: int
    """The number of runs."""
    entries: int
    """The number of journal entries."""
    removed: int
    """Records that retention or a deletion removed, as a signed segment states."""
    unsealed: int
    """Records that are not in a segment yet."""



class LedgerVerification(TypedDict):
    """The result of one part of a verification."""

    problems: List[LedgerVerificationProblems]
    """What is wrong; empty if nothing is."""
    counts: LedgerVerificationCounts
    """What was checked."""
    next_cursor: NotRequired[str]
    """Absent in the last part."""



class MintedToken(TypedDict):
    """A new credential of a user. It is not shown again."""

    token: str
    """The access token, or the personal token."""
    access_token: NotRequired[str]
    """The access token; the same as `token`."""
    refresh_token: NotRequired[str]
    """The refresh token (`rt_…`). Each can be used once."""
    token_type: Literal["Bearer"]
    """How the token is sent."""
    expires_in: NotRequired[int]
    """The lifetime of the token in seconds."""
    user: NotRequired[User]
    id: NotRequired[str]
    """The id."""
    name: NotRequired[str]
    """The name."""
    expires_at: NotRequired[str]
    """When it expires, in ISO 8601."""
    created_at: NotRequired[str]
    """When it was created, in ISO 8601."""



class PersonalToken(TypedDict):
    """A long-lived token of a user, without its value."""

    id: str
    """tok_…"""
    name: NotRequired[str]
    """The name."""
    created_at: str
    """When it was created, in ISO 8601."""
    expires_at: NotRequired[str]
    """When it expires, in ISO 8601."""
    last_used_at: NotRequired[str]
    """Accurate to a few seconds."""
    revoked_at: NotRequired[str]
    """When it was revoked, in ISO 8601."""



class IdentityIssuerConsole(TypedDict):
    """How the web console signs in with this issuer."""

    client_id: str
    """The client id of the console at the issuer."""



class IdentityIssuer(TypedDict):
    """An OpenID Connect issuer whose users are users of the app."""

    id: str
    """iss_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    issuer: str
    """The URL of the issuer, as its tokens name it."""
    audience: str
    """The audience that tokens of the issuer must name."""
    jwks_url: NotRequired[str]
    """Where the public keys of the issuer are. Default: as its discovery document says."""
    create_users: bool
    """Whether an unknown subject becomes a new user."""
    link_by_email: bool
    """Whether a subject is linked to the user with its verified address."""
    claims: Dict[str, Any]
    """Which claims of a token set organisation, role and teams."""
    console: NotRequired[IdentityIssuerConsole]
    """How the web console signs in with this issuer."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ConnectedAssistant(TypedDict):
    """A program that a user allowed to use the MCP endpoint for them, by OAuth."""

    id: str
    """asg_…"""
    app: str
    """dap_…"""
    sandbox: NotRequired[str]
    """sbx_…"""
    user: str
    """The user for whom it acts, usr_…."""
    name: str
    """The name that it gave itself."""
    url: NotRequired[str]
    """The address of its metadata document, or a page that it named."""
    redirect_host: str
    """The host, and the port, to which the browser returns."""
    scopes: List[str]
    """What it may do, at the MCP endpoint alone."""
    created_at: str
    """When the user connected it."""
    last_used_at: str
    """When it last fetched a token. A token is valid for one hour."""
    expires_at: str
    """When the connection ends unless it is used. Each use extends it by 30 days."""



class Org(TypedDict):
    """An organisation of users, teams and agents."""

    id: str
    """org_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    name: str
    """The name."""
    slug: NotRequired[str]
    """A name for URLs."""
    kind: Literal["company"]
    """The kind."""
    logo: NotRequired[ImageSource]
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class Team(TypedDict):
    """Users and agents who share what the team owns."""

    id: str
    """tem_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    name: str
    """The name."""
    description: NotRequired[str]
    """A text for people."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    membership_status: NotRequired[Literal["joined", "not_joined"]]
    """The membership status of the calling user."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class MembershipTeam(TypedDict):
    """The team (`tea_…`)."""

    id: str
    """The id."""



class MembershipUser(TypedDict):
    """The user (`usr_…`)."""

    id: NotRequired[str]
    """usr_…"""
    app: NotRequired[str]
    """The app (`dap_…`) that it belongs to."""
    email: NotRequired[str]
    """The email address."""
    name: NotRequired[str]
    """The name."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    org_name: NotRequired[str]
    """The name of the organisation."""
    org_role: NotRequired[Literal["admin", "member", "viewer"]]
    """The role in the organisation."""
    is_system_user: NotRequired[bool]
    """Whether the user stands for a program instead of a person."""
    groups_overage: NotRequired[Literal[True]]
    """The last token of an issuer left out the groups of the user, because there are too many. It grants none."""
    metadata: NotRequired[Dict[str, Any]]
    """A free key-value map, returned as stored."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: NotRequired[str]
    """When it was created, in ISO 8601."""
    updated_at: NotRequired[str]
    """When it last changed, in ISO 8601."""



class MembershipAgent(TypedDict):
    """The agent that owns it, or that it is about."""

    id: str
    """The id."""
    name: NotRequired[str]
    """The name."""
    lookup_key: NotRequired[str]
    """A name for programs, unique in the app or sandbox."""



class Membership(TypedDict):
    """One user or agent in a team."""

    id: str
    """tmb_…"""
    team: MembershipTeam
    """The team (`tea_…`)."""
    type: Literal["user", "agent"]
    """Whether the member is a user or an agent."""
    user: NotRequired[MembershipUser]
    """The user (`usr_…`)."""
    agent: NotRequired[MembershipAgent]
    """The agent that owns it, or that it is about."""
    name: NotRequired[str]
    """The name."""
    role: Literal["owner", "admin", "member"]
    """The role."""
    joined_at: str
    """When the member joined, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class Group(TypedDict):
    """Users to whom documents can be restricted. Groups contain no groups."""

    id: str
    """grp_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    namespace: str
    """Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group."""
    external_id: str
    """The name of the group in its namespace, which never changes."""
    name: NotRequired[str]
    """The name."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class GroupMemberUser(TypedDict):
    """The user (`usr_…`)."""

    id: str
    """The id."""
    email: NotRequired[str]
    """The email address."""
    name: NotRequired[str]
    """The name."""



class GroupMember(TypedDict):
    """A user in a group."""

    user: GroupMemberUser
    """The user (`usr_…`)."""
    created_at: str
    """When it was created, in ISO 8601."""



class ErasureCertificateStatementRemains(TypedDict):
    what: str
    """What remains, such as `audit_entries` or `backups`."""
    where: str
    """In which part of the installation."""
    until: NotRequired[str]
    """The last day on which it may be there. Absent: the server sets no such day."""
    note: str
    """What exactly, and how it goes away."""



class ErasureCertificateStatementReceivers(TypedDict):
    kind: Literal["model", "embedder", "webhook", "traces", "origin"]
    """`origin`: where the source read its documents, which still has them."""
    name: str
    """A model, or the id of a webhook or a source."""
    host: NotRequired[str]
    """Where it was sent."""
    messages: NotRequired[int]
    """Calls or deliveries."""
    last_at: NotRequired[str]
    """When it was last used, in ISO 8601."""
    certain: bool
    """False if it received data of the app in this time, and may have received this."""



class ErasureCertificateStatement(TypedDict):
    """What is signed."""

    erasure: str
    """ers_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: str
    """The sandbox (`sbx_…`); absent in production."""
    user: NotRequired[str]
    """usr_…"""
    document: NotRequired[str]
    """cdo_…"""
    source: NotRequired[str]
    """cso_…"""
    requested_at: str
    """When the erasure was ordered."""
    completed_at: str
    """When it ended, in ISO 8601."""
    covers: str
    """What the erasure covers, and what it does not."""
    removed: Dict[str, int]
    """How many of each kind were deleted, such as documents, chunks, postings, vectors, files and runs."""
    remains: List[ErasureCertificateStatementRemains]
    """What the server does not delete."""
    receivers: List[ErasureCertificateStatementReceivers]
    """Who outside received something of it."""



class ErasureCertificate(TypedDict):
    """What an erasure deleted, what remains where, and who received it, signed with the key of the audit log."""

    statement: ErasureCertificateStatement
    """What is signed."""
    key_id: str
    """The id of the key that signed it."""
    public_key: str
    """The public key, an Ed25519 key of 32 bytes, in hexadecimal."""
    signature: str
    """Ed25519 over the statement, in hexadecimal. The guide "Erasure" describes the bytes."""



class Agent(TypedDict):
    """An agent, owned by a user, a team or an organisation."""

    id: str
    """agt_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    name: str
    """The name."""
    lookup_key: NotRequired[str]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[str]
    """A text for people."""
    identity: NotRequired[str]
    """Who the agent is, as a prompt for a language model."""
    default_model: NotRequired[str]
    """The name of the language model that the agent prefers."""
    email: NotRequired[str]
    """The email address."""
    phone_number: NotRequired[str]
    """The telephone number."""
    originator: NotRequired[str]
    """A text of your own that says where the agent comes from."""
    profile_picture: NotRequired[ImageSource]
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class Thread(TypedDict):
    """A conversation whose messages sources can ingest."""

    id: str
    """thr_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    title: NotRequired[str]
    """The title."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class Installation(TypedDict):
    """A connection of an agent, and the source that it fills."""

    id: str
    """cin_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    agent: str
    """The agent that owns it, or that it is about."""
    kind: Literal["webhook/inbound", "thread/messages"]
    """The kind."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    inbound_url: NotRequired[str]
    """The secret URL that accepts documents."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class UploadLink(TypedDict):
    """A URL for uploading one file without a credential."""

    file: str
    """The id that the file will have."""
    method: Literal["PUT"]
    """The method to send the bytes with."""
    url: str
    """Accepts the bytes once, without any other credential."""
    expires_at: str
    """When it expires, in ISO 8601."""



class Upload(TypedDict):
    """A resumable upload."""

    id: str
    """upl_…"""
    file: str
    """The id of the file, which exists once the upload is finished."""
    state: Literal["uploading", "finished"]
    """The state."""
    filename: str
    """The name of the file."""
    content_type: str
    """The media type."""
    offset: int
    """The number of bytes stored."""
    length: int
    """The size of the whole file in bytes."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    user: NotRequired[str]
    """The user who created it."""
    created_at: str
    """When it was created, in ISO 8601."""
    expires_at: str
    """When an unfinished upload is deleted."""



class ConfigEntryCurrentVersion(TypedDict):
    """The number of the newest version."""

    id: str
    """cfv_…"""
    version_number: int
    """The number of the version, from 1."""
    content_hash: str
    """SHA-256 in hex."""
    created_at: str
    """When it was created, in ISO 8601."""



class ConfigEntry(TypedDict):
    """A versioned text at a virtual path."""

    id: str
    """cfg_…"""
    virtual_path: str
    """The path of the entry."""
    content_type: str
    """The media type."""
    content: NotRequired[str]
    """The text."""
    version: int
    """The version number, from 1."""
    current_version: ConfigEntryCurrentVersion
    """The number of the newest version."""
    file: str
    """The file (`fil_…`)."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ExtractionDestination(TypedDict):
    """Where the outputs are written."""

    kind: Literal["config", "storage"]
    """The kind."""
    path_prefix: NotRequired[str]
    """The virtual path under which outputs are written."""



class ExtractionError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class ExtractionLeftOut(TypedDict):
    url: str
    """The URL."""
    reason: str
    """The reason."""



class ExtractionProgress(TypedDict):
    """How far it is."""

    discovered: int
    """How many pages were found."""
    done: int
    """How many are done."""
    failed: int
    """How many failed."""



class ExtractionDataProgress(TypedDict):
    """Present if the extraction has a schema."""

    pending: int
    """The number of outputs that wait for their data."""
    done: int
    """How many are done."""
    failed: int
    """How many failed."""
    pieces: int
    """The number of pieces into which texts were divided so far."""
    pieces_done: int
    """How many pieces are done."""



class ExtractionUsage(TypedDict):
    """What the language model used. Present if the extraction has a schema."""

    total_tokens: int
    """A request in progress counts with the maximum that it may use."""
    requests: int
    """The number of requests."""



class Extraction(TypedDict):
    """A job that turns a document, a page or a site into Markdown."""

    id: str
    """ext_…"""
    kind: Literal["document", "link", "site"]
    """The kind."""
    state: Literal["running", "done", "failed"]
    """The state."""
    destination: ExtractionDestination
    """Where the outputs are written."""
    file: NotRequired[str]
    """The file (`fil_…`)."""
    url: NotRequired[str]
    """The URL."""
    mode: NotRequired[Literal["link", "site"]]
    """`link` for one page, `site` for a whole site."""
    max_pages: NotRequired[int]
    """How many pages the crawl reads at most."""
    include_paths: NotRequired[List[str]]
    """An option of the site. Omitted in lists."""
    exclude_paths: NotRequired[List[str]]
    """An option of the site. Omitted in lists."""
    max_depth: NotRequired[int]
    """How many links away from the first page the crawl goes."""
    allow_subdomains: NotRequired[bool]
    """Whether the crawl also reads subdomains of the host."""
    ignore_robots: NotRequired[bool]
    """Whether the crawl ignores robots.txt."""
    sitemap: NotRequired[Literal["include", "skip", "only"]]
    """Whether the crawl also reads pages of the sitemap, or only those."""
    schema: NotRequired[Dict[str, Any]]
    """The JSON Schema of the data. Omitted in lists."""
    instructions: NotRequired[str]
    """Omitted in lists."""
    model: NotRequired[str]
    """The model or alias that extracts the data. Omitted in lists, and for the default."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    failure_reason: NotRequired[Literal["fetch_failed", "unsupported_content", "extraction_failed", "timeout", "internal_error"]]
    """The kind of failure."""
    error: NotRequired[ExtractionError]
    """Why it failed."""
    output_count: int
    """The number of finished outputs."""
    byte_count: int
    """The total size in bytes of the outputs’ text when it was written."""
    outputs: NotRequired[List[ExtractionOutput]]
    """The texts, in order. Omitted in lists."""
    left_out: NotRequired[List[ExtractionLeftOut]]
    """The first hundred pages of a site that were skipped, with the reason: robots, path, trap, generated, duplicate or redirected_away."""
    progress: ExtractionProgress
    """How far it is."""
    waiting_count: NotRequired[int]
    """The number of pages that are read and become outputs once enough pages show what the site repeats. Omitted when none waits."""
    data_progress: NotRequired[ExtractionDataProgress]
    """Present if the extraction has a schema."""
    usage: NotRequired[ExtractionUsage]
    """What the language model used. Present if the extraction has a schema."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""


KvChange = Union["KvPut", "KvRemoval", "StreamPosition"]


class WebhookWarnings(TypedDict):
    field: str
    """The member of the request, such as `events.0`."""
    message: str
    """What looks like a mistake, for people."""



class Webhook(TypedDict):
    """A URL that receives events."""

    id: str
    """whk_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: Optional[str]
    """The sandbox (`sbx_…`); absent in production."""
    url: str
    """The URL."""
    lookup_key: NotRequired[str]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[str]
    """A text for people."""
    events: List[str]
    """Names of events, or `*` for all."""
    automations: NotRequired[List[str]]
    """The automations for whose runs a function is woken, instead of events."""
    status: Literal["active", "paused"]
    """The status."""
    paused_reason: NotRequired[str]
    """Why it was paused, if the server paused it."""
    failing_since: NotRequired[str]
    """The time of the first failed attempt since the last success. With `automations`, a success is that the function wrote something."""
    secret: NotRequired[str]
    """whsec_…: returned only in the response that creates or rotates it."""
    previous_secret_until: NotRequired[str]
    """Until this time, deliveries are also signed with the previous secret."""
    warnings: NotRequired[List[WebhookWarnings]]
    """Names in `events` that nothing has emitted so far, with the nearest name that is. Present only in the response that creates or changes the webhook."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class WebhookDeliveryLogError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class WebhookDeliveryLog(TypedDict):
    at: str
    """When it happened, in ISO 8601."""
    duration_ms: int
    """The duration in milliseconds."""
    status: NotRequired[int]
    """The status of the response."""
    error: NotRequired[WebhookDeliveryLogError]
    """Why it failed."""



class WebhookDelivery(TypedDict):
    """One event for one webhook, with its attempts."""

    id: str
    """whd_…"""
    webhook: str
    """The id of the webhook."""
    event: str
    """evt_…, sent as `webhook-id`."""
    type: str
    """The name of the event."""
    sequence: int
    """The number of the event in its app or sandbox, from 1."""
    state: Literal["pending", "delivered", "failed"]
    """The state."""
    attempts: int
    """The number of attempts."""
    log: List[WebhookDeliveryLog]
    """The latest 20 attempts, oldest first."""
    next_attempt_at: NotRequired[str]
    """When the next attempt is due, in ISO 8601."""
    delivered_at: NotRequired[str]
    """When the receiver accepted it, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ModelPrices(TypedDict):
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""

    input: int
    """What a million tokens of messages cost."""
    output: int
    """What a million written tokens cost."""



class Model(TypedDict):
    """A language model that an app brings."""

    id: str
    """mdl_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: Optional[str]
    """The sandbox (`sbx_…`); absent in production."""
    name: str
    """The name by which requests choose it."""
    kind: NotRequired[Literal["embedding", "rerank"]]
    """What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`."""
    provider: Literal["openai", "anthropic", "google", "cohere"]
    """The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking."""
    model: str
    """The model, as its provider names it."""
    url: str
    """The base URL of its provider."""
    has_key: bool
    """Whether a key is stored for this host."""
    context_tokens: NotRequired[int]
    """How many tokens the messages and the text may have together."""
    output_tokens: NotRequired[int]
    """How many tokens the model can write in one response."""
    timeout_seconds: NotRequired[int]
    """How long the model may write nothing before it is given up."""
    dimensions: NotRequired[int]
    """How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused."""
    batch_texts: NotRequired[int]
    """Of the kind `embedding`: how many texts one request may have. Default: 64."""
    query_prefix: NotRequired[str]
    """Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces."""
    passage_prefix: NotRequired[str]
    """Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again."""
    query_input_type: NotRequired[str]
    """Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default)."""
    passage_input_type: NotRequired[str]
    """Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix."""
    fusion_weight: NotRequired[float]
    """Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1."""
    modalities: List[Literal["text", "image", "file"]]
    """What the model reads."""
    prices: NotRequired[ModelPrices]
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ModelAlias(TypedDict):
    """A name for an ordered list of models."""

    id: str
    """mal_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: Optional[str]
    """The sandbox (`sbx_…`); absent in production."""
    name: str
    """The name by which requests choose it."""
    models: List[str]
    """Names of models, in the order in which they are tried. Aliases do not nest."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ModelCallPrices(TypedDict):
    """The prices at which the call was made."""

    input: int
    """What a million tokens of messages cost."""
    output: int
    """What a million written tokens cost."""



class ModelCall(TypedDict):
    """One call of a language model."""

    id: str
    """mcl_…"""
    model: str
    """The name of the model; `default` is the one that the operator set."""
    alias: NotRequired[str]
    """The alias that chose the model."""
    operation: NotRequired[Literal["embeddings", "rerank"]]
    """What it was for, if not to write text."""
    provider: str
    """The provider of the model."""
    provider_model: str
    """The model, as its provider names it."""
    status: Literal["running", "succeeded", "failed", "abandoned"]
    """How it ended. `abandoned`: its process was killed, and what it reserved counts."""
    error_code: NotRequired[str]
    """Why it failed."""
    finish_reason: NotRequired[str]
    """Why the model stopped, in its own words."""
    prompt_tokens: NotRequired[int]
    """Tokens of the messages."""
    completion_tokens: NotRequired[int]
    """Tokens that the model wrote."""
    estimated: bool
    """Whether the tokens are estimated: the provider reported none."""
    reserved_tokens: int
    """Tokens that were reserved before the call."""
    prices: NotRequired[ModelCallPrices]
    """The prices at which the call was made."""
    cost: NotRequired[int]
    """What it cost, in millionths of a currency unit. Absent for a model without prices."""
    latency_ms: NotRequired[int]
    """How long it took."""
    first_token_ms: NotRequired[int]
    """When the first text arrived."""
    user: NotRequired[str]
    """The user (`usr_…`) for whom it was made."""
    agent: NotRequired[str]
    """The agent (`agt_…`) for which it was made."""
    automation: NotRequired[str]
    """The automation (`aut_…`)."""
    run: NotRequired[str]
    """The run (`atr_…`)."""
    node: NotRequired[str]
    """The id of the node."""
    extraction: NotRequired[str]
    """The extraction (`ext_…`)."""
    prompt: NotRequired[str]
    """The messages, if the server keeps contents."""
    output: NotRequired[str]
    """The text, if the server keeps contents."""
    created_at: str
    """When it was created, in ISO 8601."""
    ended_at: NotRequired[str]
    """When it ended, in ISO 8601."""



class ModelTest(TypedDict):
    """What happened when a model was tried."""

    ok: bool
    """Whether the model did what it is for."""
    problem: NotRequired[Literal["no_key", "key_refused", "not_found", "unreachable", "timeout", "failed"]]
    """`no_key`: none is stored for the URL. `key_refused`: 401 or 403. `not_found`: 404, so the URL or the name of the model is wrong. `unreachable`: no connection. `timeout`: nothing within 20 seconds. `failed`: anything else, such as vectors of another length."""
    message: NotRequired[str]
    """What happened, in words."""
    latency_ms: int
    """How long the call took."""
    first_token_ms: NotRequired[int]
    """When the first text arrived."""



class AvailableModelPrices(TypedDict):
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""

    input: int
    """What a million tokens of messages cost."""
    output: int
    """What a million written tokens cost."""



_AvailableModelKeywords = TypedDict("_AvailableModelKeywords", {"from": "Literal[\"app\", \"operator\"]"})


class AvailableModel(_AvailableModelKeywords):
    """A model or an alias that requests of the app may name."""

    name: str
    """The name by which requests choose it."""
    kind: Literal["model", "alias"]
    """Whether it is one model or an ordered list."""
    is_default: bool
    """Whether it is used if a request names no model."""
    usable: bool
    """Whether it has the key that it needs. Of an alias, whether one of its models has."""
    purpose: NotRequired[Literal["embedding", "rerank"]]
    """What it is for, if not to write text."""
    provider: NotRequired[Literal["openai", "anthropic", "google", "cohere"]]
    """The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking."""
    dimensions: NotRequired[int]
    """How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused."""
    model: NotRequired[str]
    """The model, as its provider names it."""
    models: NotRequired[List[str]]
    """The names of the models of an alias."""
    context_tokens: NotRequired[int]
    """How many tokens the messages and the text may have."""
    modalities: NotRequired[List[str]]
    """What the model reads."""
    prices: NotRequired[AvailableModelPrices]
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""



class ModelBudget(TypedDict):
    """A limit for the tokens or the cost of language models."""

    id: str
    """mbg_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    sandbox: Optional[str]
    """The sandbox (`sbx_…`); absent in production."""
    subject: Literal["app", "sandbox", "user", "agent", "automation", "run"]
    """Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production."""
    subject_id: NotRequired[str]
    """The one that the budget is for. Absent: each user, agent, run … has the budget for itself."""
    period: Literal["day", "month", "total"]
    """When the count starts at 0 again: each day or month (UTC), or never."""
    tokens: NotRequired[int]
    """Tokens beyond which calls are refused."""
    cost: NotRequired[int]
    """Money beyond which calls are refused, in millionths of a currency unit."""
    soft_tokens: NotRequired[int]
    """Tokens beyond which the event `model_budget.reached` is emitted."""
    soft_cost: NotRequired[int]
    """Money beyond which the event is emitted, in millionths of a currency unit."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class ModelBudgetUse(TypedDict):
    """How much of a budget one of its subjects has used in this period."""

    subject_id: Optional[str]
    """Who used it; null for the app."""
    tokens: int
    """Tokens used, with those reserved by calls in progress."""
    cost: int
    """Money used, in millionths of a currency unit."""
    resets_at: Optional[str]
    """When the count starts at 0 again."""



class ModelUsage(TypedDict):
    """What the calls of one group used."""

    group: Optional[str]
    """The id, the name of the model, or the day (UTC); null for calls of none."""
    calls: int
    """The number of calls."""
    prompt_tokens: int
    """Tokens of messages."""
    completion_tokens: int
    """Tokens that models wrote."""
    cost: int
    """What they cost, in millionths of a currency unit."""



class KnowledgeSourceLearnedModel(TypedDict):
    status: Literal["ready", "over_quota"]
    """`over_quota`: the latest model would exceed the app’s quota of bytes and is not stored. Until there is room, search uses the previous model, or only text and vectors."""
    bytes: int
    """The size in bytes of the model in use; 0 without one. It counts towards `file_bytes`."""
    bytes_needed: Optional[int]
    """The size in bytes of the model that was not stored; null if `ready`, and for users and agents if some documents of the source are restricted."""
    trained_at: Optional[str]
    """When the model in use was stored."""



class KnowledgeSourceHeldDeletions(TypedDict):
    documents: int
    """How many documents the last listing did not contain."""
    of: int
    """How many there were."""
    since: str
    """When the pull found this."""



class KnowledgeSourceWarnings(TypedDict):
    field: str
    """The member of the request, such as `payload.max_pagess`."""
    message: str
    """What looks like a mistake, for people."""



class KnowledgeSourceStatisticsLastIngestion(TypedDict):
    status: Literal["pending", "running", "awaiting_callback", "succeeded", "failed"]
    """The status."""
    created_at: str
    """When it was created, in ISO 8601."""



class KnowledgeSourceStatistics(TypedDict):
    """Only in lists with `include=statistics`."""

    documents: int
    """Number of documents."""
    last_ingestion: Optional[KnowledgeSourceStatisticsLastIngestion]
    """The newest ingestion; null if there was none."""



class KnowledgeSource(TypedDict):
    """Where knowledge comes from: documents, a page, a site, a file."""

    id: str
    """cso_…"""
    type: str
    """The type."""
    state: Literal["active", "paused"]
    """The state."""
    agent: Optional[str]
    """The agent that owns it, or that it is about."""
    context_installation: Optional[str]
    """The installation (`cin_…`) that created the source; null if it was created directly."""
    created_at: Optional[str]
    """When it was created, in ISO 8601."""
    updated_at: Optional[str]
    """When it last changed, in ISO 8601."""
    lookup_key: Optional[str]
    """A name for programs, unique in the app or sandbox."""
    learned_model: Optional[KnowledgeSourceLearnedModel]
    """What search has learned from the source; null until it has learned something."""
    metadata: Optional[Dict[str, Any]]
    """A free key-value map, returned as stored."""
    org: Optional[str]
    """The organisation (`org_…`)."""
    parent_source: Optional[str]
    """The source that it was derived from; null for others."""
    payload: Optional[Dict[str, Any]]
    """The data that comes with it."""
    sandbox: Optional[str]
    """The sandbox (`sbx_…`); absent in production."""
    team: Optional[str]
    """The team (`tea_…`)."""
    thread: Optional[str]
    """The thread (`thr_…`)."""
    user: Optional[str]
    """The user (`usr_…`)."""
    has_credentials: bool
    """Whether pulls sign in with stored credentials."""
    held_deletions: Optional[KnowledgeSourceHeldDeletions]
    """Deletions that wait for a person, because the listing was empty or they are more than half of the source. A pull with `confirm_deletions` carries them out. Not shown to users and agents if some documents of the source are restricted."""
    embedder: NotRequired[str]
    """The model that computes its vectors. Absent: the installation’s embedder does."""
    version_retention_days: NotRequired[int]
    """For how many days old versions of documents are kept. Absent: none are kept."""
    versions_from: NotRequired[str]
    """When the source began to keep versions. What was before is not known."""
    warnings: NotRequired[List[KnowledgeSourceWarnings]]
    """Members of the payload that are not used and resemble members that are. Present only in the response that creates or changes the source."""
    statistics: NotRequired[KnowledgeSourceStatistics]
    """Only in lists with `include=statistics`."""



class KnowledgeIngestion(TypedDict):
    """A job that adds content to a source."""

    id: str
    """cig_…"""
    source: str
    """The knowledge source (`cso_…`)."""
    status: Literal["pending", "running", "awaiting_callback", "succeeded", "failed"]
    """The status."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    error: NotRequired[Dict[str, Any]]
    """Why it failed."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    stats: Dict[str, Any]
    """What the ingestion did, in numbers."""
    started_at: NotRequired[str]
    """When it started, in ISO 8601."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class KnowledgeDocument(TypedDict):
    """A document of a source."""

    id: str
    """cdo_…"""
    source: str
    """The knowledge source (`cso_…`)."""
    title: NotRequired[str]
    """The title."""
    file: NotRequired[str]
    """The file (`fil_…`)."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    content_type: NotRequired[str]
    """The media type."""
    content_hash: str
    """The SHA-256 of the text, in hexadecimal."""
    total_lines: int
    """The number of lines of the whole text."""
    total_size: int
    """The size of the whole text in bytes."""
    total_chunks: int
    """Number of chunks, the parts that searches find."""
    source_url: NotRequired[str]
    """The address of the page or document."""
    acl: NotRequired[DocumentAcl]
    external_id: NotRequired[str]
    """Its id where it comes from, given by a connector or a pull."""
    version: NotRequired[int]
    """The version of the document. Absent if its source keeps none."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class KnowledgeDocumentContent(TypedDict):
    """Text of a document, or a slice of it."""

    id: str
    """The id."""
    content: str
    """The text, or the slice of it that was asked for."""
    total_lines: int
    """The number of lines of the whole text."""
    total_size: int
    """The size of the whole text in bytes."""
    title: NotRequired[str]
    """The title."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    unit: NotRequired[str]
    """What `offset` and `limit` count."""
    offset: NotRequired[int]
    """The number of units that were skipped."""
    limit: NotRequired[int]
    """The number of units that were asked for."""
    start_line: NotRequired[int]
    """Its first line, from 1."""
    end_line: NotRequired[int]
    """Its last line, from 1."""
    start_byte: NotRequired[int]
    """The byte of the text at which it starts, from 0."""
    end_byte: NotRequired[int]
    """The byte of the text at which it ends, exclusive."""



class KnowledgeDocumentChunk(TypedDict):
    """A part of a document that searches return."""

    id: str
    """cim_…"""
    content: str
    """The text."""
    heading_path: List[str]
    """The headings above it, outermost first."""
    fragment: NotRequired[str]
    """For a web page: the fragment of its address that leads to the heading, without `#`."""
    start_line: int
    """Its first line, from 1."""
    end_line: int
    """The last line, counted from 1 (inclusive)."""
    start_byte: int
    """The byte of the text at which it starts, from 0."""
    end_byte: int
    """The end in bytes, counted from 0 (exclusive)."""



class KnowledgeSync(TypedDict):
    """One run of a connector, a program that fills a source."""

    id: str
    """csy_…"""
    source: str
    """cso_…"""
    mode: Literal["full", "changes"]
    """`link` for one page, `site` for a whole site."""
    status: Literal["active", "expired", "completing", "succeeded", "aborted"]
    """`expired`: its connector has been silent for too long, so the next one resumes or replaces it. `completing`: what was sent is still being indexed."""
    fence: int
    """Every batch names it, and the end of a sync that was resumed. Resuming the sync changes it."""
    cursor: Optional[str]
    """Of the last batch; at the start of a sync of changes, of the one before. Null: begin at the beginning."""
    next_batch: int
    """The number of the next batch."""
    documents: int
    """The number of upserts received."""
    pending: int
    """The number of upserts and deletes that are not in the index yet."""
    stats: Dict[str, Any]
    """What became of them: `written`, `unchanged`, `outdated` (a lower `order`), `deleted`, `failed`, and up to 100 `errors`."""
    expires_at: str
    """When it expires, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""
    completed_at: Optional[str]
    """When it ended, in ISO 8601."""



class KnowledgeEmbeddingEstimate(TypedDict):
    """What it would take to name another embedder. Only with `embedder` in the query."""

    embedder: str
    """The embedder of the estimate."""
    documents: int
    """How many documents would be embedded."""
    tokens: int
    """Tokens that they are likely to need, at four bytes a token."""
    cost: Optional[int]
    """What they are likely to cost, in millionths of a currency unit; null for a model without prices."""



class KnowledgeEmbedding(TypedDict):
    """The embedder of a source, and how far its vectors are."""

    embedder: Optional[str]
    """The embedder that the source names; null for the installation’s."""
    serving: Optional[str]
    """The embedder whose vectors searches use; null for the installation’s."""
    status: Literal["ready", "running", "failed"]
    """`running`: documents wait for their vectors. `failed`: the last try failed, and another one follows; searches use the vectors that there are."""
    documents: int
    """How many documents the source has."""
    embedded: int
    """How many of them have vectors of `embedder`."""
    tokens: int
    """Tokens that vectors have used since `embedder` was named; 0 without one."""
    cost: int
    """What they cost, in millionths of a currency unit."""
    error: NotRequired[str]
    """Why the last try failed."""
    retry_at: NotRequired[str]
    """When the next try is due."""
    started_at: NotRequired[str]
    """When `embedder` was named."""
    completed_at: NotRequired[str]
    """When searches began to use its vectors."""
    estimate: NotRequired[KnowledgeEmbeddingEstimate]
    """What it would take to name another embedder. Only with `embedder` in the query."""



class KnowledgeDocumentVersionContent(TypedDict):
    """A version with its text."""

    document: str
    """cdo_…"""
    source: str
    """cso_…"""
    version: int
    """Its number. The first version of a document is 1."""
    current: bool
    """Whether the document is so now."""
    title: NotRequired[str]
    """The title then."""
    metadata: Dict[str, Any]
    """The metadata then."""
    content_type: NotRequired[str]
    """The media type of what it was read from."""
    content_hash: str
    """The SHA-256 of its text, in hexadecimal."""
    total_lines: int
    """The lines of its text."""
    total_size: int
    """The bytes of its text."""
    source_url: NotRequired[str]
    """Where it came from."""
    external_id: NotRequired[str]
    """Its id where it came from."""
    created_at: str
    """When it became the current version."""
    replaced_at: NotRequired[str]
    """When the next version replaced it."""
    deleted_at: NotRequired[str]
    """When the document was deleted, if that ended this version."""
    content: str
    """Its text, or a slice of it."""
    unit: NotRequired[str]
    """The unit of the slice."""
    offset: NotRequired[int]
    """The offset that was asked for."""
    limit: NotRequired[int]
    """The limit that was asked for."""
    start_line: NotRequired[int]
    """Its first line."""
    end_line: NotRequired[int]
    """Its last line."""
    start_byte: NotRequired[int]
    """Where it begins, in bytes."""
    end_byte: NotRequired[int]
    """Where it ends; exclusive."""



class KnowledgeDocumentComparisonTitle(TypedDict):
    """Only if they differ."""

    before: NotRequired[str]
    """The title of the base."""
    after: NotRequired[str]
    """The title of the version."""



class KnowledgeDocumentComparisonHunksLines(TypedDict):
    type: Literal["same", "removed", "added"]
    """Which of the two has the line."""
    text: str
    """The line, without its line break."""



class KnowledgeDocumentComparisonHunks(TypedDict):
    old_start: int
    """The first of these lines in the base, from 1."""
    new_start: int
    """The first of these lines in the version."""
    lines: List[KnowledgeDocumentComparisonHunksLines]
    """Lines that differ, with up to three equal ones around them."""



class KnowledgeDocumentComparison(TypedDict):
    """How a version of a document differs from another one."""

    document: str
    """cdo_…"""
    base: int
    """The number of the version that was compared with."""
    version: int
    """The number of the version."""
    title: NotRequired[KnowledgeDocumentComparisonTitle]
    """Only if they differ."""
    metadata: List[str]
    """The members of the metadata that differ."""
    removed_lines: int
    """How many lines only the base has."""
    added_lines: int
    """How many lines only the version has."""
    hunks: List[KnowledgeDocumentComparisonHunks]
    """What differs, in the order of the text."""
    truncated: bool
    """Whether there is more than fits: at most 5,000 lines and 524,288 characters."""



class KnowledgeRestorePlan(TypedDict):
    """What restoring a source to a time would change."""

    at: str
    """The time."""
    documents: int
    """How many documents the source has now."""
    changed: int
    """How many would get an earlier version back."""
    created: int
    """How many that were deleted since would come back."""
    deleted: int
    """How many that did not exist then would be deleted."""
    unknown: int
    """How many would stay as they are, because their version of that time is no longer kept."""



class AutomationConcurrency(TypedDict):
    """Limits active runs with the same value in their payload. Only with a workflow."""

    key: str
    """The path of a member of the payload, such as `customer.id`."""
    limit: int
    """How many runs with the same value may be active at the same time."""



class AutomationRate(TypedDict):
    """Limits how many runs start in any time of this length. The others wait. Only with a workflow."""

    limit: int
    """How many runs may start in this time."""
    per: str
    """The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most."""
    key: NotRequired[str]
    """The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one."""



class AutomationRetention(TypedDict):
    """How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever."""

    days: NotRequired[int]
    """Days after their end for which completed and cancelled runs are kept. Default: no limit."""
    runs: NotRequired[int]
    """How many completed and cancelled runs of each automation are kept, the newest. Default: no limit."""
    failed_days: NotRequired[int]
    """Days for which failed runs are kept. Default: `days`."""
    failed_runs: NotRequired[int]
    """How many failed runs of each automation are kept, the newest. Default: `runs`."""
    files: NotRequired[bool]
    """Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false."""



class Automation(TypedDict):
    """Defines what runs, when, as whom and in which steps."""

    id: str
    """aut_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    name: str
    """The name."""
    lookup_key: NotRequired[str]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[str]
    """A text for people."""
    type: Literal["trigger", "scheduled", "invoked"]
    """The type."""
    status: Literal["draft", "running", "paused"]
    """The status."""
    trigger: NotRequired[str]
    """The name of the event that starts a run. Only for type trigger."""
    filter: NotRequired[str]
    """A JSONata expression over the payload. The event starts a run only if it is true."""
    schedule: NotRequired[str]
    """A five-field cron expression. Only for type scheduled."""
    timezone: str
    """The time zone of the schedule, such as `Europe/Berlin`. Default UTC."""
    workflow: Optional[Dict[str, Any]]
    """The WorkflowGraph; the WorkflowProgram whose steps your code executes; or null when an external worker reports on whole runs."""
    input_schema: Optional[Dict[str, Any]]
    """The JSON Schema that the payload of an invocation must match, or null."""
    invoke_auth: Literal["any", "secret_key", "user"]
    """Which callers may invoke it: end users, secret keys, or any."""
    run_as_user: NotRequired[str]
    """The user (`usr_…`) as whom runs act."""
    run_as_agent: NotRequired[str]
    """The agent (`agt_…`) as which runs act."""
    paused_reason: NotRequired[str]
    """Why it was paused, if the server paused it."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    max_concurrent_runs: NotRequired[int]
    """How many runs may be active at the same time."""
    max_pending_runs: NotRequired[int]
    """How many runs may wait for their turn. Beyond it, invocations are 429."""
    concurrency: NotRequired[AutomationConcurrency]
    """Limits active runs with the same value in their payload. Only with a workflow."""
    rate: NotRequired[AutomationRate]
    """Limits how many runs start in any time of this length. The others wait. Only with a workflow."""
    timeout_seconds: NotRequired[int]
    """How many seconds a run may take."""
    retention: NotRequired[AutomationRetention]
    """How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever."""
    next_run_at: NotRequired[str]
    """When the next scheduled run starts, in ISO 8601."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""



class WorkflowVersion(TypedDict):
    """The current or an earlier graph of the automation. A run keeps the version it started with."""

    version: int
    """The number of the version, from 1."""
    workflow: Optional[Dict[str, Any]]
    """The WorkflowGraph; the WorkflowProgram whose steps your code executes; or null when an external worker reports on whole runs."""
    scopes: NotRequired[List[str]]
    """The scopes of the key that wrote it. Without them, it has full rights."""
    created_at: str
    """When it was created, in ISO 8601."""



class InvocableAutomation(TypedDict):
    """An automation as shown to callers who may invoke it."""

    id: str
    """aut_…"""
    name: str
    """The name."""
    lookup_key: NotRequired[str]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[str]
    """A text for people."""
    input_schema: Optional[Dict[str, Any]]
    """The JSON Schema that the payload of an invocation must match, or null."""



class AutomationRunPage(TypedDict):
    """Runs, newest first. `after_cursor` points after the last run returned."""

    data: List[AutomationRunSummary]
    """The entries."""
    has_more: bool
    """Whether there are further entries."""
    after_cursor: NotRequired[str]
    """The position after the last entry returned. Pass it as `after_cursor` to get what follows."""



class RunJournalPage(TypedDict):
    """Entries in order. `resume_cursor` points after the last entry returned."""

    journal: Optional[WorkflowJournal]
    """The journal; null if the run has none."""
    data: List[WorkflowJournalEntry]
    """The entries."""
    after_cursor: NotRequired[str]
    """The position after the last entry returned. Pass it as `after_cursor` to get what follows."""
    has_more: bool
    """Whether there are further entries."""
    resume_cursor: NotRequired[str]
    """The position after the last entry returned, also on the last page."""


AutomationRunOutput = Union["GenerationPart", "StreamPosition"]


class ClaimedAutomationRunError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""
    node_id: NotRequired[str]
    """The id of the node."""



class ClaimedAutomationRunWaitingForWorkflowChanged(TypedDict):
    """Why the last worker could not continue the run."""

    expected: Any
    """The step that the journal has."""
    found: Any
    """What the code asked for instead."""



class ClaimedAutomationRunWaitingFor(TypedDict):
    """What the run waits for; absent if it does not wait."""

    kind: Literal["approval", "signal", "child", "time", "retry", "worker"]
    """People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far."""
    node_id: NotRequired[str]
    """The node that waits."""
    approval: NotRequired[str]
    """The approval (`apr_…`)."""
    name: NotRequired[str]
    """The name of the signal."""
    id: NotRequired[str]
    """The child: a run, an extraction or an ingestion."""
    until: NotRequired[str]
    """When the wait ends at the latest."""
    others: NotRequired[int]
    """The number of other nodes that also wait."""
    workflow_changed: NotRequired[ClaimedAutomationRunWaitingForWorkflowChanged]
    """Why the last worker could not continue the run."""



class ClaimedAutomationRunPendingFor(TypedDict):
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""

    limit: Literal["max_concurrent_runs", "concurrency", "rate"]
    """The limit of the automation that delays the run."""
    until: NotRequired[str]
    """When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further."""
    ahead: int
    """The number of runs that start before it, counted up to 10,000."""



class ClaimedAutomationRun(TypedDict):
    """A run that an external worker has claimed."""

    id: str
    """atr_…"""
    app: str
    """The app (`dap_…`) that it belongs to."""
    automation: str
    """The automation (`aut_…`)."""
    type: Literal["trigger", "scheduled", "invoked"]
    """The type."""
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    """The status."""
    payload: NotRequired[Any]
    """The data that comes with it."""
    participants: NotRequired[Dict[str, str]]
    """Values that expressions of the run can read as `$participants`."""
    result: NotRequired[Any]
    """What the run returned."""
    error: NotRequired[ClaimedAutomationRunError]
    """Why it failed."""
    event_id: NotRequired[str]
    """The id (`evt_…`) of the event that started it."""
    invoked_by: NotRequired[str]
    """The user or agent; absent for schedules, events and keys."""
    retried_from: NotRequired[str]
    """The run (`atr_…`) that it repeats."""
    parent_run: NotRequired[str]
    """The run (`atr_…`) that started it."""
    workflow_version: NotRequired[int]
    """The version of the graph that the run started with; absent without one."""
    waiting_for: NotRequired[ClaimedAutomationRunWaitingFor]
    """What the run waits for; absent if it does not wait."""
    pending_for: NotRequired[ClaimedAutomationRunPendingFor]
    """Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    sandbox: NotRequired[str]
    """The sandbox (`sbx_…`); absent in production."""
    lease_until: NotRequired[str]
    """When the claim of the worker expires, in ISO 8601."""
    started_at: NotRequired[str]
    """When it started, in ISO 8601."""
    completed_at: NotRequired[str]
    """When it ended, in ISO 8601."""
    created_at: str
    """When it was created, in ISO 8601."""
    updated_at: str
    """When it last changed, in ISO 8601."""
    claim: str
    """Send it with each report, so that a report after the lease has expired is refused."""



class ClaimedWork(TypedDict):
    """A run that the worker now executes, and what has happened in it so far."""

    run: AutomationRun
    claim: str
    """The claim, `clm_…`. Another claim on the run makes it invalid."""
    lease_until: str
    """When the claim expires without a renewal."""
    sequence: int
    """The last entry of the journal: `after_sequence` of the first batch."""
    journal: List[WorkflowJournalEntry]
    """The beginning of the journal, with the secrets that redaction hides from other readers."""
    after_cursor: NotRequired[str]
    """Continues the journal; absent if this is its end."""



class WorkJournalPage(TypedDict):
    """A part of the journal of a claimed run."""

    journal: List[WorkflowJournalEntry]
    """The next entries."""
    after_cursor: NotRequired[str]
    """Continues the journal; absent if this is its end."""



class AppendedWork(TypedDict):
    """The state of a run after a batch of entries."""

    sequence: int
    """The last entry of the journal: `after_sequence` of the next batch."""
    cancel_requested: bool
    """The run was cancelled or ended otherwise: nothing was written."""
    lease_until: NotRequired[str]
    """When the claim expires; absent if it was released."""
    command_ids: Dict[str, str]
    """The command of each step that the batch started: the idempotency key of all its attempts."""
    entries: List[WorkflowJournalEntry]
    """What the server has added since `after_sequence`."""



class ClaimedJournal(TypedDict):
    """A part of the journal of the run that a function was woken for."""

    run: str
    """The run."""
    sequence: int
    """The last entry of the journal: `after_sequence` of the first batch."""
    lease_until: str
    """When the claim expires without a request with entries."""
    journal: List[WorkflowJournalEntry]
    """The next entries, with the secrets that redaction hides from other readers."""
    after_cursor: NotRequired[str]
    """Continues the journal; absent if this is its end."""



class Approval(TypedDict):
    """A question of a run to people. Those who answer see the question, not the run."""

    id: str
    """apr_…"""
    status: Literal["waiting", "answered", "expired", "cancelled"]
    """`cancelled`: its run ended, or its node no longer waits."""
    question: str
    """What is asked."""
    form: Dict[str, Any]
    """The JSON Schema that `data` of the answer must match."""
    expires_at: NotRequired[str]
    """When it expires; absent without a deadline."""
    created_at: str
    """When it was created, in ISO 8601."""
    closed_at: NotRequired[str]
    """When it was answered, expired or was cancelled."""
    answered_by: NotRequired[str]
    """The user (`usr_…`), the developer, `secret key`, or the holder of a link and to whom it was sent."""
    app: NotRequired[str]
    """The app. This and the members below are only for secret keys and developers."""
    sandbox: NotRequired[str]
    """The sandbox, if it is not in production."""
    run: NotRequired[str]
    """The run that waits (`atr_…`)."""
    automation: NotRequired[str]
    """The automation of the run (`aut_…`)."""
    node_id: NotRequired[str]
    """The node that asks."""
    answer: NotRequired[Any]
    """The `data` of the answer."""
    users: NotRequired[List[str]]
    """Users who may answer."""
    teams: NotRequired[List[str]]
    """Teams whose members may answer."""
    roles: NotRequired[List[str]]
    """Roles in `org` that may answer."""
    org: NotRequired[str]
    """The organisation of `roles`."""
    excluded_user: NotRequired[str]
    """The user who invoked the run and may not answer."""
    excluded_users: NotRequired[List[str]]
    """All users who may not answer: they invoked the run or one that led to it."""



class ApprovalLink(TypedDict):
    """A link by which a person without an account answers an approval."""

    url: str
    """Shows the question on GET and takes the answer once on POST. Shown only here."""
    expires_at: str
    """When the link expires."""



class LinkedApproval(TypedDict):
    """An approval as the holder of a link sees it."""

    status: Literal["waiting", "answered", "expired", "cancelled"]
    """`cancelled`: its run ended, or its node no longer waits."""
    question: str
    """What is asked."""
    form: Dict[str, Any]
    """The JSON Schema that `data` of the answer must match."""
    sent_to: str
    """To whom the link was sent."""
    expires_at: NotRequired[str]
    """When the link or the approval expires, whichever is earlier."""


StreamedEvent = Union["LoggedEvent", "StreamPosition"]


class SignedCitationsStatementQuotesPlacesBoxes(TypedDict):
    page: int
    """The page, from 1."""
    left: float
    """In points from the left edge of the page as it is shown."""
    top: float
    """In points from the upper edge."""
    right: float
    """In points from the left edge."""
    bottom: float
    """In points from the upper edge."""
    page_width: float
    """The width of the page in points."""
    page_height: float
    """Its height."""



class SignedCitationsStatementQuotesPlaces(TypedDict):
    start_byte: int
    """Where it begins in the text of the document."""
    end_byte: int
    """Where it ends; exclusive."""
    start_page: NotRequired[int]
    """Present if the text has page marks."""
    end_page: NotRequired[int]
    """Its last page."""
    text: str
    """What the document says there."""
    boxes: NotRequired[List[SignedCitationsStatementQuotesPlacesBoxes]]
    """With `boxes`: where it stands on the pages of the PDF, one rectangle for each line; empty if unknown."""



class SignedCitationsStatementQuotesDifference(TypedDict):
    type: Literal["same", "only_in_quote", "only_in_source"]
    """Who has these words."""
    text: str
    """The words."""



class SignedCitationsStatementQuotes(TypedDict):
    """A quote, whether a document says it, and where."""

    text: str
    """The quote."""
    start: NotRequired[int]
    """Where it begins in `text`, in UTF-16 code units."""
    end: NotRequired[int]
    """Where it ends; exclusive."""
    status: Literal["exact", "normalised", "elided", "altered", "not_found", "too_short"]
    """`exact`: the document has these characters. `normalised`: it differs in white space, quotation marks, dashes, hyphens at line ends, the pipes of tables or emphasis, never in case, digits or words. `elided`: its parts stand in this order under one heading. `altered`: the document says something similar, see `difference`. `not_found`: in no document that the caller may read. `too_short`: under three words."""
    document: NotRequired[str]
    """cdo_…; the document that says this, or something similar."""
    source: NotRequired[str]
    """cso_…"""
    title: NotRequired[str]
    """The title of the document."""
    content_hash: NotRequired[str]
    """The version of the document: the SHA-256 of its text, in hexadecimal."""
    version: NotRequired[int]
    """The version of the document. Absent if its source keeps none."""
    places: NotRequired[List[SignedCitationsStatementQuotesPlaces]]
    """One, or one for each part of an elided quote."""
    difference: NotRequired[List[SignedCitationsStatementQuotesDifference]]
    """Only if `altered`: the words of the quote and of the document, in their order."""



class SignedCitationsStatementSentences(TypedDict):
    start: int
    """Where it begins in `text`, in UTF-16 code units."""
    end: int
    """Where it ends; exclusive."""
    status: Literal["quoted", "cited", "uncited"]
    """`quoted`: a quote in it is found, and none is altered or missing. `cited`: it names a document. `uncited`: neither."""



class SignedCitationsStatement(TypedDict):
    """What the signature covers."""

    app: str
    """dap_…"""
    sandbox: str
    """sbx_…"""
    verified_at: str
    """When the quotes were checked."""
    text_digest: NotRequired[str]
    """The SHA-256 of `text`, in hexadecimal."""
    quotes: List[SignedCitationsStatementQuotes]
    """The quotes, in their order."""
    sentences: NotRequired[List[SignedCitationsStatementSentences]]
    """Of `text`."""



class SignedCitations(TypedDict):
    """What was found about quotes, signed with the key of the audit log."""

    statement: SignedCitationsStatement
    """What the signature covers."""
    key_id: str
    """The id of the key that signed it."""
    public_key: str
    """The public key, an Ed25519 key of 32 bytes, in hexadecimal."""
    signature: str
    """Ed25519 over the statement, in hexadecimal. The guide "Answers" describes the bytes."""



class AnswerUsage(TypedDict):
    prompt_tokens: int
    """As the provider counts them."""
    completion_tokens: int
    """As the provider counts them."""
    total_tokens: int
    """As the provider counts them."""



class AnswerJudgeUsage(TypedDict):
    """The tokens of its requests."""

    prompt_tokens: int
    """As the provider counts them."""
    completion_tokens: int
    """As the provider counts them."""
    total_tokens: int
    """As the provider counts them."""



class AnswerJudge(TypedDict):
    """Only if the operator has set a judge and a model was asked: what it did."""

    model: Optional[str]
    """The model; null if it wrote nothing usable."""
    judged: int
    """The number of sentences with a verdict, removed ones included."""
    error: Optional[str]
    """Why it gave no further verdicts: `llm_failed`, `llm_timeout`, `invalid_output`, `refused`, `token_budget_exceeded`, or another code of an error; null if it did not fail."""
    usage: AnswerJudgeUsage
    """The tokens of its requests."""



class Answer(TypedDict):
    """A text from sources, with what was checked."""

    status: Literal["answered", "extracts", "not_in_sources", "unsupported", "model_refused"]
    """`extracts`: the best passages themselves, because the server has no model. `not_in_sources`: nothing was found, or the model says that it is not there. `unsupported`: there was a sentence without support (`refuse`), or none with it (`remove`). `model_refused`: the model refused to write. In the last three, `text` is empty."""
    text: str
    """The answer in Markdown, with citations such as [1]."""
    sentences: List[AnswerSentence]
    """The sentences of the text, in their order."""
    citations: List[Citation]
    """What the text cites or quotes."""
    removed: int
    """The number of sentences that were removed."""
    incomplete: bool
    """Whether the model reached the limit of its text."""
    model: Optional[str]
    """The model that wrote it."""
    usage: Optional[AnswerUsage]
    """The tokens of the request to the model; null without one, and if it was ended."""
    judge: NotRequired[AnswerJudge]
    """Only if the operator has set a judge and a model was asked: what it did."""



class FileCreatedMessageData(TypedDict):
    """The entries."""

    file: str
    """The file (`fil_…`)."""
    filename: str
    """The name of the file."""
    content_type: str
    """The media type."""
    size: int
    """The size in bytes."""
    org: NotRequired[str]
    """The organisation (`org_…`) that owns the file."""
    team: NotRequired[str]
    """The team (`tea_…`) that owns the file."""
    user: NotRequired[str]
    """The user (`usr_…`) who owns the file."""
    agent: NotRequired[str]
    """The agent (`agt_…`) that owns the file."""



class FileCreatedMessage(TypedDict):
    """A file was stored: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["file.created"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: FileCreatedMessageData
    """The entries."""



class FileUpdatedMessageData(TypedDict):
    """The entries."""

    file: str
    """The file (`fil_…`)."""
    filename: str
    """The name of the file."""
    content_type: str
    """The media type."""
    size: int
    """The size in bytes."""
    org: NotRequired[str]
    """The organisation (`org_…`) that owns the file."""
    team: NotRequired[str]
    """The team (`tea_…`) that owns the file."""
    user: NotRequired[str]
    """The user (`usr_…`) who owns the file."""
    agent: NotRequired[str]
    """The agent (`agt_…`) that owns the file."""



class FileUpdatedMessage(TypedDict):
    """A name, the sharing or the metadata of a file changed: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["file.updated"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: FileUpdatedMessageData
    """The entries."""



class ExtractionCompletedMessageData(TypedDict):
    """The entries."""

    extraction: str
    """The extraction (`ext_…`)."""
    kind: Literal["document", "link", "site"]
    """What was read."""
    state: Literal["done", "failed"]
    """How it ended."""
    file: NotRequired[str]
    """The file (`fil_…`) that was read."""
    url: NotRequired[str]
    """The URL that was read."""
    failure_reason: NotRequired[str]
    """The kind of failure."""



class ExtractionCompletedMessage(TypedDict):
    """An extraction ended with its text: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["extraction.completed"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: ExtractionCompletedMessageData
    """The entries."""



class ExtractionFailedMessageData(TypedDict):
    """The entries."""

    extraction: str
    """The extraction (`ext_…`)."""
    kind: Literal["document", "link", "site"]
    """What was read."""
    state: Literal["done", "failed"]
    """How it ended."""
    file: NotRequired[str]
    """The file (`fil_…`) that was read."""
    url: NotRequired[str]
    """The URL that was read."""
    failure_reason: NotRequired[str]
    """The kind of failure."""



class ExtractionFailedMessage(TypedDict):
    """An extraction failed: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["extraction.failed"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: ExtractionFailedMessageData
    """The entries."""



class IngestionSucceededMessageDataError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class IngestionSucceededMessageData(TypedDict):
    """The entries."""

    ingestion: str
    """The ingestion (`cig_…`)."""
    source: str
    """The knowledge source (`cso_…`)."""
    status: Literal["succeeded", "failed"]
    """How it ended."""
    error: NotRequired[IngestionSucceededMessageDataError]
    """Why it failed."""



class IngestionSucceededMessage(TypedDict):
    """Content became searchable: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["ingestion.succeeded"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: IngestionSucceededMessageData
    """The entries."""



class IngestionFailedMessageDataError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class IngestionFailedMessageData(TypedDict):
    """The entries."""

    ingestion: str
    """The ingestion (`cig_…`)."""
    source: str
    """The knowledge source (`cso_…`)."""
    status: Literal["succeeded", "failed"]
    """How it ended."""
    error: NotRequired[IngestionFailedMessageDataError]
    """Why it failed."""



class IngestionFailedMessage(TypedDict):
    """An ingestion failed: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["ingestion.failed"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: IngestionFailedMessageData
    """The entries."""



class KnowledgeSourceCreatedMessageData(TypedDict):
    """The entries."""

    source: str
    """The knowledge source (`cso_…`)."""
    type: str
    """The type of the source."""
    state: str
    """The state of the source."""



class KnowledgeSourceCreatedMessage(TypedDict):
    """A source was created: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["knowledge_source.created"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: KnowledgeSourceCreatedMessageData
    """The entries."""



class KnowledgeSourceUpdatedMessageData(TypedDict):
    """The entries."""

    source: str
    """The knowledge source (`cso_…`)."""
    type: str
    """The type of the source."""
    state: str
    """The state of the source."""



class KnowledgeSourceUpdatedMessage(TypedDict):
    """A source changed: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["knowledge_source.updated"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: KnowledgeSourceUpdatedMessageData
    """The entries."""



class KnowledgeSourceDeletedMessageData(TypedDict):
    """The entries."""

    source: str
    """The knowledge source (`cso_…`)."""
    type: str
    """The type of the source."""
    state: str
    """The state of the source."""



class KnowledgeSourceDeletedMessage(TypedDict):
    """A source was deleted: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["knowledge_source.deleted"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: KnowledgeSourceDeletedMessageData
    """The entries."""



class AutomationRunCompletedMessageDataError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class AutomationRunCompletedMessageData(TypedDict):
    """The entries."""

    run: str
    """The run (`atr_…`)."""
    automation: str
    """The automation (`aut_…`)."""
    status: Literal["completed", "failed"]
    """How it ended."""
    result: NotRequired[Any]
    """What the run returned."""
    error: NotRequired[AutomationRunCompletedMessageDataError]
    """Why it failed."""



class AutomationRunCompletedMessage(TypedDict):
    """A run ended with its result: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["automation_run.completed"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: AutomationRunCompletedMessageData
    """The entries."""



class AutomationRunFailedMessageDataError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class AutomationRunFailedMessageData(TypedDict):
    """The entries."""

    run: str
    """The run (`atr_…`)."""
    automation: str
    """The automation (`aut_…`)."""
    status: Literal["completed", "failed"]
    """How it ended."""
    result: NotRequired[Any]
    """What the run returned."""
    error: NotRequired[AutomationRunFailedMessageDataError]
    """Why it failed."""



class AutomationRunFailedMessage(TypedDict):
    """A run failed: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["automation_run.failed"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: AutomationRunFailedMessageData
    """The entries."""



class ApprovalRequestedMessageData(TypedDict):
    """The entries."""

    approval: str
    """The approval (`apr_…`)."""
    run: str
    """The run that waits (`atr_…`)."""
    automation: str
    """The automation (`aut_…`)."""
    node_id: str
    """The node that asks."""
    question: str
    """What is asked."""
    expires_at: NotRequired[str]
    """When the approval expires."""



class ApprovalRequestedMessage(TypedDict):
    """A run asks people and waits for an answer: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["approval.requested"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: ApprovalRequestedMessageData
    """The entries."""



class ApprovalAnsweredMessageData(TypedDict):
    """The entries."""

    approval: str
    """The approval (`apr_…`)."""
    run: str
    """The run that waits (`atr_…`)."""
    automation: str
    """The automation (`aut_…`)."""
    node_id: str
    """The node that asks."""
    answered_by: str
    """The user, the developer, `secret key`, or the holder of a link."""



class ApprovalAnsweredMessage(TypedDict):
    """An approval was answered: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["approval.answered"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: ApprovalAnsweredMessageData
    """The entries."""



class ModelBudgetReachedMessageData(TypedDict):
    """The entries."""

    budget: str
    """The budget (`mbg_…`)."""
    level: Literal["soft", "hard"]
    """Which limit was reached. Beyond the hard one, calls are refused."""
    subject: str
    """Whose budget it is, such as `user`."""
    subject_id: Optional[str]
    """The id of the user, agent …; null for the app."""
    period: Literal["day", "month", "total"]
    """When the count starts at 0 again."""
    resets_at: Optional[str]
    """The end of the period, in ISO 8601."""
    tokens: int
    """Tokens used, with those reserved by calls in progress."""
    cost: int
    """Money used, in millionths of a currency unit."""



class ModelBudgetReachedMessage(TypedDict):
    """A budget for language models has reached a limit: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["model_budget.reached"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: ModelBudgetReachedMessageData
    """The entries."""



class AutomationRunReadyMessageData(TypedDict):
    """The entries."""

    run: str
    """The run (`atr_…`)."""
    automation: str
    """Its automation."""
    workflow: str
    """The name of its program."""
    lookup_key: NotRequired[str]
    """The lookup key of the automation."""
    claim: NotRequired[str]
    """The credential for the run, `rct_…`. Only in the message itself."""
    lease_until: NotRequired[str]
    """When the claim expires. Only in the message itself."""
    url: NotRequired[str]
    """Where the claim is used, `…/api/v1/claimed_run`. Only in the message itself."""



class AutomationRunReadyMessage(TypedDict):
    """A run of a workflow in code has work: sent to the webhook of its function alone: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["automation_run.ready"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: AutomationRunReadyMessageData
    """The entries."""



class WebhookTestMessageData(TypedDict):
    """The entries."""

    webhook: str
    """The webhook (`whk_…`)."""



class WebhookTestMessage(TypedDict):
    """Sent by the test of a webhook, to that webhook alone: the message to webhooks."""

    id: str
    """The event (`evt_…`); the same at every attempt."""
    type: Literal["webhook.test"]
    """The name of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    sequence: int
    """Its number in production or in the sandbox."""
    data: WebhookTestMessageData
    """The entries."""



class GetHealthResponse(TypedDict):
    status: Literal["ok"]
    """The status."""



class GetReadinessResponseChecks(TypedDict):
    """The result of each check."""

    start: Literal["ok", "failed"]
    """Whether the process has finished its start."""
    database: Literal["ok", "failed"]
    """Whether PostgreSQL can be reached."""
    migrations: Literal["ok", "failed"]
    """Whether the database has the schema of this release."""
    blobs: Literal["ok", "failed"]
    """Whether the contents of files can be reached."""



class GetReadinessResponse(TypedDict):
    status: Literal["ready"]
    """The status."""
    checks: GetReadinessResponseChecks
    """The result of each check."""



class CreateAppRequest(TypedDict):
    name: str
    """The name."""



class Page(TypedDict):
    """What every page of a list has in addition to its entries in `data`."""

    page: int
    """The number of the page, from 1."""
    page_size: int
    """The number of entries on a full page."""
    total_entries: int
    """The exact number of entries on all pages."""
    total_pages: int
    """The number of pages."""
    has_next: bool
    """Whether a page follows."""
    has_prev: bool
    """Whether a page precedes."""



class AppPage(Page):
    """One page of a list."""

    data: List[App]
    """The entries."""



class UpdateAppRequestQuotas(TypedDict):
    """The app’s own limits, at most those set by the operator of the server; null removes one. They apply to production and to each sandbox separately."""

    file_bytes: NotRequired[Optional[int]]
    """The most bytes of files that the app may store; null for no limit."""
    documents: NotRequired[Optional[int]]
    """The most documents that the app may have; null for no limit."""
    pages: NotRequired[Optional[int]]
    """The most pages that the app may read in a day; null for no limit."""
    tokens: NotRequired[Optional[int]]
    """The most tokens that the app may use in a day; null for no limit."""
    sandboxes: NotRequired[Optional[int]]
    """The most sandboxes that the app may have; null for no limit."""



class UpdateAppRequestRunRetention(TypedDict):
    """How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever."""

    days: NotRequired[int]
    """Days after their end for which completed and cancelled runs are kept. Default: no limit."""
    runs: NotRequired[int]
    """How many completed and cancelled runs of each automation are kept, the newest. Default: no limit."""
    failed_days: NotRequired[int]
    """Days for which failed runs are kept. Default: `days`."""
    failed_runs: NotRequired[int]
    """How many failed runs of each automation are kept, the newest. Default: `runs`."""
    files: NotRequired[bool]
    """Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false."""



class UpdateAppRequest(TypedDict):
    name: NotRequired[str]
    """The name."""
    quotas: NotRequired[UpdateAppRequestQuotas]
    """The app’s own limits, at most those set by the operator of the server; null removes one. They apply to production and to each sandbox separately."""
    run_retention: NotRequired[Optional[UpdateAppRequestRunRetention]]
    """How long runs of automations without `retention` are kept after their end."""
    assistants: NotRequired[bool]
    """Whether assistants may connect to the MCP endpoint by OAuth, where the server runs with `QUARRY_MCP_OAUTH`. `false` also disconnects those that are."""



class CreateSandboxRequest(TypedDict):
    name: str
    """The name."""



class SandboxPage(Page):
    """One page of a list."""

    data: List[Sandbox]
    """The entries."""



class UpdateSandboxRequest(TypedDict):
    name: NotRequired[str]
    """The name."""



class CreateKeyRequest(TypedDict):
    type: Literal["secret", "publishable"]
    """The type."""
    name: NotRequired[str]
    """The name."""
    sandbox: NotRequired[str]
    """sbx_…; the key then works only in that sandbox."""
    expires_in_days: NotRequired[int]
    """Default: it does not expire."""
    scopes: NotRequired[List[Literal["read", "files", "extractions", "knowledge", "automations", "kv", "webhooks", "people", "app", "files:read", "extractions:read", "knowledge:read", "automations:read", "kv:read", "webhooks:read", "people:read", "app:read"]]]
    """For a secret key: what it may do. `read` allows reading everything, an area such as `kv` all operations of that area, `kv:read` reading in it. Default: everything."""



class ApiKeyPage(Page):
    """One page of a list."""

    data: List[ApiKey]
    """The entries."""



class SetAsideJobPage(Page):
    """One page of a list."""

    data: List[SetAsideJob]
    """The entries."""



class AuditEntryPage(Page):
    """One page of a list."""

    data: List[AuditEntry]
    """The entries."""



class CredentialUsePage(Page):
    """One page of a list."""

    data: List[CredentialUse]
    """The entries."""



class LoginRequest(TypedDict):
    email: str
    """The email address of the user; upper and lower case are the same."""
    password: str
    """The password."""



class RefreshSessionRequest(TypedDict):
    refresh_token: str
    """The refresh token (`rt_…`). Each can be used once."""



class LogoutRequest(TypedDict):
    refresh_token: str
    """The refresh token (`rt_…`). Each can be used once."""



class CreateUserTokenRequest(TypedDict):
    type: NotRequired[Literal["session", "personal"]]
    """Default: session, or personal for end users."""
    name: NotRequired[str]
    """The name."""
    expires_in_days: NotRequired[int]
    """For personal tokens. Default 30."""
    scopes: NotRequired[str]
    """Only full_access is supported."""



class ListUserTokensResponse(TypedDict):
    data: List[PersonalToken]
    """The entries."""



class CreateIdentityIssuerRequestClaimsOrg(TypedDict):
    """The organisation (`org_…`)."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, str]]
    """Organisations (org_…) by value."""



class CreateIdentityIssuerRequestClaimsRole(TypedDict):
    """The role."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, Literal["admin", "member", "viewer"]]]
    """Roles in the organisation by value. Default `member`."""



class CreateIdentityIssuerRequestClaimsTeams(TypedDict):
    """Teams."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, str]]
    """Teams (tem_…) by value."""



class CreateIdentityIssuerRequestClaimsGroups(TypedDict):
    """The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none."""

    claim: str
    """The claim of the token that is read."""



class CreateIdentityIssuerRequestClaims(TypedDict):
    """Which claims name the organisation, role, teams and name of a user. Other claims are ignored."""

    org: NotRequired[CreateIdentityIssuerRequestClaimsOrg]
    """The organisation (`org_…`)."""
    role: NotRequired[CreateIdentityIssuerRequestClaimsRole]
    """The role."""
    teams: NotRequired[CreateIdentityIssuerRequestClaimsTeams]
    """Teams."""
    groups: NotRequired[CreateIdentityIssuerRequestClaimsGroups]
    """The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none."""
    name: NotRequired[str]
    """The name."""



class CreateIdentityIssuerRequestConsole(TypedDict):
    """The client that this server is at the issuer, for signing in to the web console."""

    client_id: str
    """The client id of the console at the issuer."""
    client_secret: NotRequired[str]
    """Write-only: never returned."""



class CreateIdentityIssuerRequest(TypedDict):
    issuer: str
    """The issuer, exactly as its tokens name it, such as https://login.example.com."""
    audience: str
    """The audience of tokens for this app."""
    jwks_url: NotRequired[Optional[str]]
    """Where the public keys of the issuer are. Default: as its discovery document says."""
    create_users: NotRequired[bool]
    """Whether an unknown account becomes a new user. Default false."""
    link_by_email: NotRequired[bool]
    """Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false."""
    claims: NotRequired[CreateIdentityIssuerRequestClaims]
    """Which claims name the organisation, role, teams and name of a user. Other claims are ignored."""
    console: NotRequired[Optional[CreateIdentityIssuerRequestConsole]]
    """How the web console signs in with this issuer."""



class IdentityIssuerPage(Page):
    """One page of a list."""

    data: List[IdentityIssuer]
    """The entries."""



class UpdateIdentityIssuerRequestClaimsOrg(TypedDict):
    """The organisation (`org_…`)."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, str]]
    """Organisations (org_…) by value."""



class UpdateIdentityIssuerRequestClaimsRole(TypedDict):
    """The role."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, Literal["admin", "member", "viewer"]]]
    """Roles in the organisation by value. Default `member`."""



class UpdateIdentityIssuerRequestClaimsTeams(TypedDict):
    """Teams."""

    claim: str
    """The claim of the token that is read."""
    values: NotRequired[Dict[str, str]]
    """Teams (tem_…) by value."""



class UpdateIdentityIssuerRequestClaimsGroups(TypedDict):
    """The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none."""

    claim: str
    """The claim of the token that is read."""



class UpdateIdentityIssuerRequestClaims(TypedDict):
    """Which claims name the organisation, role, teams and name of a user. Other claims are ignored."""

    org: NotRequired[UpdateIdentityIssuerRequestClaimsOrg]
    """The organisation (`org_…`)."""
    role: NotRequired[UpdateIdentityIssuerRequestClaimsRole]
    """The role."""
    teams: NotRequired[UpdateIdentityIssuerRequestClaimsTeams]
    """Teams."""
    groups: NotRequired[UpdateIdentityIssuerRequestClaimsGroups]
    """The claim that lists the groups of a user. They are groups of the namespace that is the issuer. A token without it grants none."""
    name: NotRequired[str]
    """The name."""



class UpdateIdentityIssuerRequestConsole(TypedDict):
    """The client that this server is at the issuer, for signing in to the web console."""

    client_id: str
    """The client id of the console at the issuer."""
    client_secret: NotRequired[str]
    """Write-only: never returned."""



class UpdateIdentityIssuerRequest(TypedDict):
    audience: NotRequired[str]
    """The audience of tokens for this app."""
    jwks_url: NotRequired[Optional[str]]
    """Where the public keys of the issuer are. Default: as its discovery document says."""
    create_users: NotRequired[bool]
    """Whether an unknown account becomes a new user. Default false."""
    link_by_email: NotRequired[bool]
    """Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false."""
    claims: NotRequired[UpdateIdentityIssuerRequestClaims]
    """Which claims name the organisation, role, teams and name of a user. Other claims are ignored."""
    console: NotRequired[Optional[UpdateIdentityIssuerRequestConsole]]
    """How the web console signs in with this issuer."""



class ConnectedAssistantPage(Page):
    """One page of a list."""

    data: List[ConnectedAssistant]
    """The entries."""



class CreateOrgRequest(TypedDict):
    name: str
    """The name."""
    slug: NotRequired[str]
    """Unique within the app."""
    logo: NotRequired[Optional[Picture]]
    """The logo."""



class OrgPage(Page):
    """One page of a list."""

    data: List[Org]
    """The entries."""



class UpdateOrgRequest(TypedDict):
    name: NotRequired[str]
    """The name."""
    slug: NotRequired[str]
    """Unique within the app."""
    logo: NotRequired[Optional[Picture]]
    """The logo."""



class CreateUserRequest(TypedDict):
    email: str
    """Unique in the app or sandbox."""
    name: NotRequired[str]
    """The name."""
    password: NotRequired[str]
    """The password."""
    org: NotRequired[str]
    """org_…"""
    org_role: NotRequired[Literal["admin", "member", "viewer"]]
    """The role in the organisation."""
    is_system_user: NotRequired[bool]
    """Whether the user represents a program."""
    metadata: NotRequired[Dict[str, Any]]
    """Stored unchanged."""



class UserPage(Page):
    """One page of a list."""

    data: List[User]
    """The entries."""



class UpdateUserRequest(TypedDict):
    email: NotRequired[str]
    """Unique in the app or sandbox."""
    name: NotRequired[str]
    """The name."""
    password: NotRequired[str]
    """The password."""
    org: NotRequired[Optional[str]]
    """The organisation (`org_…`)."""
    org_role: NotRequired[Literal["admin", "member", "viewer"]]
    """The role in the organisation."""
    metadata: NotRequired[Dict[str, Any]]
    """Replaces the whole map."""



class CreateTeamRequest(TypedDict):
    name: str
    """The name."""
    description: NotRequired[str]
    """A text for people."""
    org: NotRequired[str]
    """org_…"""
    metadata: NotRequired[Dict[str, Any]]
    """Stored unchanged."""



class TeamPage(Page):
    """One page of a list."""

    data: List[Team]
    """The entries."""



class UpdateTeamRequest(TypedDict):
    name: NotRequired[str]
    """The name."""
    description: NotRequired[str]
    """A text for people."""
    metadata: NotRequired[Dict[str, Any]]
    """Replaces the whole map."""



class MembershipPage(Page):
    """One page of a list."""

    data: List[Membership]
    """The entries."""



class AddTeamMemberRequest(TypedDict):
    user: NotRequired[str]
    """usr_…"""
    agent: NotRequired[str]
    """agt_…"""
    role: NotRequired[Literal["owner", "admin", "member"]]
    """The role."""



class UpdateTeamMemberRequest(TypedDict):
    role: Literal["owner", "admin", "member"]
    """The role."""



class CreateGroupRequest(TypedDict):
    namespace: str
    """Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group."""
    external_id: str
    """The name of the group in its namespace, which never changes."""
    name: NotRequired[str]
    """The name."""



class GroupPage(Page):
    """One page of a list."""

    data: List[Group]
    """The entries."""



class UpdateGroupRequest(TypedDict):
    name: NotRequired[Optional[str]]
    """The name."""



class GroupMemberPage(Page):
    """One page of a list."""

    data: List[GroupMember]
    """The entries."""



class AddGroupMemberRequest(TypedDict):
    user: str
    """usr_…"""



class SetGroupMembersRequest(TypedDict):
    users: List[str]
    """The users (usr_…) who are the members from now on."""



class CreateErasureRequest(TypedDict):
    user: NotRequired[str]
    """usr_…"""
    document: NotRequired[str]
    """cdo_…"""
    source: NotRequired[str]
    """cso_…"""
    files: NotRequired[bool]
    """Whether the files that the documents were read from are erased too. Default false. Those of a user always are."""



class ErasurePage(Page):
    """One page of a list."""

    data: List[Erasure]
    """The entries."""



class CreateAgentRequest(TypedDict):
    name: str
    """The name."""
    lookup_key: NotRequired[str]
    """Your own name for the agent, unique for its owner. Must not look like an id."""
    description: NotRequired[str]
    """A text for people."""
    identity: NotRequired[str]
    """Who the agent is, as a prompt for a language model."""
    model: NotRequired[str]
    """The model that the agent uses by default."""
    email: NotRequired[str]
    """The email address."""
    phone_number: NotRequired[str]
    """The telephone number."""
    originator: NotRequired[str]
    """A text of your own that says where the agent comes from."""
    metadata: NotRequired[Dict[str, Any]]
    """Stored unchanged; replaces the whole map."""
    profile_picture: NotRequired[Optional[Picture]]
    """The picture."""
    org: NotRequired[str]
    """org_…"""
    team: NotRequired[str]
    """tem_…"""
    user: NotRequired[str]
    """usr_…"""



class AgentPage(Page):
    """One page of a list."""

    data: List[Agent]
    """The entries."""



class UpdateAgentRequest(TypedDict):
    name: NotRequired[str]
    """The name."""
    lookup_key: NotRequired[str]
    """Your own name for the agent, unique for its owner. Must not look like an id."""
    description: NotRequired[str]
    """A text for people."""
    identity: NotRequired[str]
    """Who the agent is, as a prompt for a language model."""
    model: NotRequired[str]
    """The model that the agent uses by default."""
    email: NotRequired[str]
    """The email address."""
    phone_number: NotRequired[str]
    """The telephone number."""
    originator: NotRequired[str]
    """A text of your own that says where the agent comes from."""
    metadata: NotRequired[Dict[str, Any]]
    """Stored unchanged; replaces the whole map."""
    profile_picture: NotRequired[Optional[Picture]]
    """The picture."""



class CreateThreadRequest(TypedDict):
    title: NotRequired[str]
    """The title."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""



class ThreadPage(Page):
    """One page of a list."""

    data: List[Thread]
    """The entries."""



class UpdateThreadRequest(TypedDict):
    title: NotRequired[str]
    """The title."""



class CreateThreadMessageRequest(TypedDict):
    content: str
    """The text."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map."""



class CreateThreadMessageResponse(TypedDict):
    id: str
    """msg_…"""
    thread: str
    """The thread (`thr_…`)."""
    content: str
    """The text."""
    metadata: Dict[str, Any]
    """A free key-value map, returned as stored."""
    created_at: str
    """When it was created, in ISO 8601."""



class CreateInstallationRequest(TypedDict):
    agent: str
    """agt_…"""
    kind: Literal["webhook/inbound", "thread/messages"]
    """The kind."""



class InstallationPage(Page):
    """One page of a list."""

    data: List[Installation]
    """The entries."""


UpdateInstallationRequest = Dict[str, Any]


class CreateFileRequest(TypedDict):
    filename: str
    """The filename with its extension."""
    content_type: str
    """MIME type."""
    data: str
    """The contents in base64 (RFC 4648, section 4)."""
    acl: NotRequired[AclInput]
    agent: NotRequired[str]
    """Associated agent, whose org owns the file."""
    org: NotRequired[str]
    """Default: the caller’s."""
    team: NotRequired[str]
    """Owner; takes precedence over `user`."""
    user: NotRequired[str]
    """Owner. Default: the calling user, unless a team is named."""
    share: NotRequired[bool]
    """Make the file public at a permanent URL. Images only."""
    automation_run: NotRequired[str]
    """The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token."""



class StoredFilePage(Page):
    """One page of a list."""

    data: List[StoredFile]
    """The entries."""



class UpdateFileRequest(TypedDict):
    filename: NotRequired[str]
    """The filename with its extension."""
    provider_metadata: NotRequired[Dict[str, Any]]
    """Replaces the whole map."""
    share: NotRequired[bool]
    """Whether the public URL of the picture works."""
    acl: NotRequired[AclInput]



class CreateFileUploadUrlRequest(TypedDict):
    filename: str
    """The filename with its extension."""
    content_type: str
    """MIME type."""
    size: NotRequired[int]
    """Maximum number of bytes."""
    checksum: NotRequired[str]
    """Expected SHA-256 in hex."""
    expires_in: NotRequired[int]
    """Seconds. Default 3600."""
    agent: NotRequired[str]
    """Associated agent, whose org owns the file."""
    org: NotRequired[str]
    """Default: the caller’s."""
    team: NotRequired[str]
    """Owner; takes precedence over `user`."""
    user: NotRequired[str]
    """Owner. Default: the calling user, unless a team is named."""
    share: NotRequired[bool]
    """Make the file public at a permanent URL. Images only."""
    automation_run: NotRequired[str]
    """The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token."""



class UploadPage(Page):
    """One page of a list."""

    data: List[Upload]
    """The entries."""



class ConfigEntryPage(Page):
    """One page of a list."""

    data: List[ConfigEntry]
    """The entries."""



class PutConfigRequest(TypedDict):
    agent: NotRequired[str]
    """The agent (agt_…) that owns the path."""
    org: NotRequired[str]
    """The organisation (org_…) that owns the path."""
    content: str
    """The text, of at most 262144 bytes in UTF-8."""
    content_type: NotRequired[str]
    """Its media type. Default `text/plain`."""
    if_version: NotRequired[int]
    """Write only if this is the current version; 0: only if the path does not exist. Otherwise 412."""



class CreateExtractionRequest(TypedDict):
    destination_kind: Literal["config", "storage"]
    """Where outputs are written."""
    destination_path: NotRequired[str]
    """The path prefix of the outputs. Required if `destination_kind` is config."""
    file: NotRequired[str]
    """fil_…; the document to read."""
    url: NotRequired[str]
    """The page or site to read."""
    mode: NotRequired[Literal["link", "site"]]
    """`link` for one page, `site` for a whole site."""
    max_pages: NotRequired[int]
    """Maximum number of pages of a site. Default 100."""
    include_paths: NotRequired[List[str]]
    """Only pages whose path matches one of these are read. Patterns are prefixes, in which * matches anything and a final $ matches the end."""
    exclude_paths: NotRequired[List[str]]
    """Pages whose path matches one of these are not read. Patterns are prefixes, in which * matches anything and a final $ matches the end."""
    max_depth: NotRequired[int]
    """Maximum number of links from the start page."""
    allow_subdomains: NotRequired[bool]
    """Also read pages on subdomains of the start page’s host."""
    ignore_robots: NotRequired[bool]
    """Read pages that robots.txt disallows. Requires a secret key."""
    sitemap: NotRequired[Literal["include", "skip", "only"]]
    """Whether to use sitemaps to find pages. Default include."""
    schema: NotRequired[Dict[str, Any]]
    """A JSON Schema (2020-12) for data that a language model extracts from each text; at most 64 KiB. References must stay within the schema. The extraction then always runs in the background (202)."""
    instructions: NotRequired[str]
    """Instructions for extracting the data. Requires schema."""
    model: NotRequired[str]
    """The model or alias that extracts the data. Default: as the operator set it. Requires schema."""
    agent: NotRequired[str]
    """agt_…; the agent that owns the job and its outputs."""
    org: NotRequired[str]
    """org_…"""



class ExtractionPage(Page):
    """One page of a list."""

    data: List[Extraction]
    """The entries."""



class ListKvEntriesResponse(TypedDict):
    data: List[KvListEntry]
    """The entries."""
    page: NotRequired[int]
    """The number of the page, from 1."""
    page_size: NotRequired[int]
    """The number of entries on a full page."""
    total_entries: NotRequired[int]
    """The exact number of entries on all pages."""
    total_pages: NotRequired[int]
    """The number of pages."""
    has_next: NotRequired[bool]
    """Whether a page follows."""
    has_prev: NotRequired[bool]
    """Whether a page precedes."""



class CreateKvEntryRequest(TypedDict):
    key: str
    """Any non-empty string, by default up to 1,024 bytes in UTF-8."""
    value: str
    """Any non-empty string, by default up to 1 MiB in UTF-8."""
    ttl_seconds: NotRequired[int]
    """Seconds until the entry expires. Without it, the entry does not expire."""
    user: NotRequired[Any]
    """The user (`usr_…`). Required for developers and secret keys, ignored for end users."""



class PutKvEntryRequest(TypedDict):
    value: str
    """Any non-empty string, by default up to 1 MiB in UTF-8."""
    ttl_seconds: NotRequired[int]
    """Seconds until the entry expires. Without it, the entry does not expire."""
    user: NotRequired[Any]
    """The user (`usr_…`). Required for developers and secret keys, ignored for end users."""



class ListKvEntriesByKeyResponse(TypedDict):
    data: List[KvEntry]
    """The entries."""
    next_cursor: Optional[str]
    """Null on the last page."""



class IncrementKvEntryRequest(TypedDict):
    key: str
    """The key."""
    by: NotRequired[int]
    """The number to add; may be negative. Default 1."""
    ttl_seconds: NotRequired[int]
    """Sets when the entry expires. Without it, the expiry of an existing entry stays as it is."""
    user: NotRequired[Any]
    """The user (`usr_…`). Required for developers and secret keys, ignored for end users."""



class BatchKvEntriesRequestOperations(TypedDict):
    op: Literal["get", "put", "delete", "increment"]
    """What the operation does."""
    key: str
    """The key."""
    value: NotRequired[str]
    """Any non-empty string, by default up to 1 MiB in UTF-8."""
    ttl_seconds: NotRequired[int]
    """Sets when the entry expires. Without it, the expiry of an existing entry stays as it is."""
    by: NotRequired[int]
    """The number to add; may be negative. Default 1."""
    if_match: NotRequired[str]
    """Like the header If-Match: the batch fails unless the entry has this tag, or with `*` exists."""
    if_none_match: NotRequired[str]
    """Like the header If-None-Match: `*` fails the batch when the entry exists."""



class BatchKvEntriesRequest(TypedDict):
    operations: List[BatchKvEntriesRequestOperations]
    """The operations, in order. All of them take effect, or none."""
    user: NotRequired[Any]
    """The user (`usr_…`). Required for developers and secret keys, ignored for end users."""



class BatchKvEntriesResponse(TypedDict):
    data: List[KvBatchResult]
    """The entries."""



class CreateWebhookRequest(TypedDict):
    url: str
    """The URL."""
    events: NotRequired[List[str]]
    """Names of events, or `*` for all."""
    automations: NotRequired[List[str]]
    """Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`."""
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[str]
    """A text for people."""



class WebhookPage(Page):
    """One page of a list."""

    data: List[Webhook]
    """The entries."""



class UpdateWebhookRequest(TypedDict):
    url: NotRequired[str]
    """The URL."""
    events: NotRequired[List[str]]
    """Names of events, or `*` for all."""
    automations: NotRequired[List[str]]
    """Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`."""
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[Optional[str]]
    """A text for people."""



class RotateWebhookSecretRequest(TypedDict):
    overlap_seconds: NotRequired[int]
    """How long deliveries are also signed with the previous secret. Default 86400, a day."""



class WebhookDeliveryPage(Page):
    """One page of a list."""

    data: List[WebhookDelivery]
    """The entries."""



class CreateModelRequestPrices(TypedDict):
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""

    input: int
    """What a million tokens of messages cost."""
    output: int
    """What a million written tokens cost."""



class CreateModelRequest(TypedDict):
    name: str
    """The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases."""
    kind: NotRequired[Literal["embedding", "rerank"]]
    """What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`."""
    provider: Literal["openai", "anthropic", "google", "cohere"]
    """The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking."""
    model: str
    """The model, as its provider names it."""
    url: NotRequired[str]
    """The base URL, up to and including the version. Required for `openai`."""
    key: NotRequired[str]
    """The key of the provider. It is never returned, and is only sent to the host of `url`."""
    context_tokens: NotRequired[int]
    """How many tokens the messages and the text may have together."""
    output_tokens: NotRequired[int]
    """How many tokens the model can write in one response."""
    timeout_seconds: NotRequired[int]
    """How long the model may write nothing before it is given up."""
    dimensions: NotRequired[int]
    """How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused."""
    batch_texts: NotRequired[int]
    """Of the kind `embedding`: how many texts one request may have. Default: 64."""
    query_prefix: NotRequired[str]
    """Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces."""
    passage_prefix: NotRequired[str]
    """Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again."""
    query_input_type: NotRequired[str]
    """Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default)."""
    passage_input_type: NotRequired[str]
    """Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix."""
    fusion_weight: NotRequired[float]
    """Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1."""
    modalities: NotRequired[List[Literal["text", "image", "file"]]]
    """What the model reads. Default: only text."""
    prices: NotRequired[CreateModelRequestPrices]
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""



class ModelPage(Page):
    """One page of a list."""

    data: List[Model]
    """The entries."""



class UpdateModelRequestPrices(TypedDict):
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""

    input: int
    """What a million tokens of messages cost."""
    output: int
    """What a million written tokens cost."""



class UpdateModelRequest(TypedDict):
    name: NotRequired[str]
    """The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases."""
    model: NotRequired[str]
    """The model, as its provider names it."""
    url: NotRequired[str]
    """The base URL. A URL of another host removes the key, unless one is sent with it."""
    key: NotRequired[Optional[str]]
    """The key of the provider; null removes it."""
    context_tokens: NotRequired[Optional[int]]
    """How many tokens the messages and the text may have together."""
    output_tokens: NotRequired[Optional[int]]
    """How many tokens the model can write in one response."""
    timeout_seconds: NotRequired[Optional[int]]
    """How long the model may write nothing before it is given up."""
    dimensions: NotRequired[int]
    """How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused."""
    batch_texts: NotRequired[Optional[int]]
    """Of the kind `embedding`: how many texts one request may have. Default: 64."""
    query_prefix: NotRequired[Optional[str]]
    """Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces."""
    passage_prefix: NotRequired[Optional[str]]
    """Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again."""
    query_input_type: NotRequired[Optional[str]]
    """Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default)."""
    passage_input_type: NotRequired[Optional[str]]
    """Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix."""
    fusion_weight: NotRequired[Optional[float]]
    """Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1."""
    modalities: NotRequired[List[Literal["text", "image", "file"]]]
    """What the model reads. Default: only text."""
    prices: NotRequired[Optional[UpdateModelRequestPrices]]
    """What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens."""



class CreateModelAliasRequest(TypedDict):
    name: str
    """The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases."""
    models: List[str]
    """Names of models, in the order in which they are tried. Aliases do not nest."""



class ModelAliasPage(Page):
    """One page of a list."""

    data: List[ModelAlias]
    """The entries."""



class UpdateModelAliasRequest(TypedDict):
    name: NotRequired[str]
    """The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases."""
    models: NotRequired[List[str]]
    """Names of models, in the order in which they are tried. Aliases do not nest."""



class ModelCallPage(Page):
    """One page of a list."""

    data: List[ModelCall]
    """The entries."""



class ListAvailableModelsResponse(TypedDict):
    data: List[AvailableModel]
    """The entries."""



class CreateModelBudgetRequest(TypedDict):
    subject: Literal["app", "sandbox", "user", "agent", "automation", "run"]
    """Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production."""
    subject_id: NotRequired[str]
    """The one that the budget is for. Absent: each user, agent, run … has the budget for itself."""
    period: Literal["day", "month", "total"]
    """When the count starts at 0 again: each day or month (UTC), or never."""
    tokens: NotRequired[int]
    """Tokens beyond which calls are refused."""
    cost: NotRequired[int]
    """Money beyond which calls are refused, in millionths of a currency unit."""
    soft_tokens: NotRequired[int]
    """Tokens beyond which the event `model_budget.reached` is emitted."""
    soft_cost: NotRequired[int]
    """Money beyond which the event is emitted, in millionths of a currency unit."""



class ModelBudgetPage(Page):
    """One page of a list."""

    data: List[ModelBudget]
    """The entries."""



class UpdateModelBudgetRequest(TypedDict):
    tokens: NotRequired[Optional[int]]
    """Tokens beyond which calls are refused. Null removes the limit."""
    cost: NotRequired[Optional[int]]
    """Money beyond which calls are refused, in millionths of a currency unit. Null removes the limit."""
    soft_tokens: NotRequired[Optional[int]]
    """Tokens beyond which the event `model_budget.reached` is emitted. Null removes the limit."""
    soft_cost: NotRequired[Optional[int]]
    """Money beyond which the event is emitted, in millionths of a currency unit. Null removes the limit."""



class ModelBudgetUsePage(Page):
    """One page of a list."""

    data: List[ModelBudgetUse]
    """The entries."""



class ModelUsagePage(Page):
    """One page of a list."""

    data: List[ModelUsage]
    """The entries."""



class ListKnowledgeSourceKindsResponseData(TypedDict):
    type: str
    """The type."""
    label: str
    """A name for people."""
    description: str
    """A text for people."""
    payload_schema: Dict[str, Any]
    """JSON Schema of `payload`."""
    credentials_schema: NotRequired[Dict[str, Any]]
    """JSON Schema of `credentials`. Absent: pulls of this kind use none."""



class ListKnowledgeSourceKindsResponse(TypedDict):
    data: List[ListKnowledgeSourceKindsResponseData]
    """The entries."""



class KnowledgeSourcePage(Page):
    """One page of a list."""

    data: List[KnowledgeSource]
    """The entries."""



class CreateKnowledgeSourceRequestCredentials(TypedDict):
    username: NotRequired[str]
    """For HTTP, with `password`."""
    password: NotRequired[str]
    """For HTTP, with `username`."""
    token: NotRequired[str]
    """For HTTP: a bearer token. For repositories: the token, as the password."""
    access_key_id: NotRequired[str]
    """For buckets, with `secret_access_key`."""
    secret_access_key: NotRequired[str]
    """For buckets, with `access_key_id`."""
    session_token: NotRequired[str]
    """For buckets: of temporary keys."""



class CreateKnowledgeSourceRequest(TypedDict):
    type: str
    """A type from the kinds list."""
    agent: NotRequired[str]
    """The agent that owns it, or that it is about."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""
    org: NotRequired[str]
    """The organisation, if it owns the source itself. Not allowed with another owner."""
    parent_source: NotRequired[str]
    """The source that it was derived from; null for others."""
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    credentials: NotRequired[Optional[CreateKnowledgeSourceRequestCredentials]]
    """What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too."""
    payload: NotRequired[Dict[str, Any]]
    """Configuration; its members depend on the type."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map."""
    state: NotRequired[Literal["active", "paused"]]
    """The state."""
    thread: NotRequired[str]
    """The thread (`thr_…`)."""
    embedder: NotRequired[str]
    """A model for embeddings, or an alias, that computes the vectors of the source. Without one, the installation’s embedder does. Only secret keys and developers set it."""
    version_retention_days: NotRequired[int]
    """For how many days versions of documents are kept after they were changed or deleted. By default, none are kept."""



class UpdateKnowledgeSourceRequestCredentials(TypedDict):
    username: NotRequired[str]
    """For HTTP, with `password`."""
    password: NotRequired[str]
    """For HTTP, with `username`."""
    token: NotRequired[str]
    """For HTTP: a bearer token. For repositories: the token, as the password."""
    access_key_id: NotRequired[str]
    """For buckets, with `secret_access_key`."""
    secret_access_key: NotRequired[str]
    """For buckets, with `access_key_id`."""
    session_token: NotRequired[str]
    """For buckets: of temporary keys."""



class UpdateKnowledgeSourceRequest(TypedDict):
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    credentials: NotRequired[Optional[UpdateKnowledgeSourceRequestCredentials]]
    """What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too."""
    payload: NotRequired[Dict[str, Any]]
    """Replaces the whole payload."""
    metadata: NotRequired[Dict[str, Any]]
    """Replaces the whole map."""
    state: NotRequired[Literal["active", "paused"]]
    """The state."""
    embedder: NotRequired[Optional[str]]
    """A model for embeddings, or an alias, that computes the vectors of the source; null for the installation’s embedder. The vectors are computed in the background, and searches use the previous ones until all documents have theirs. Only secret keys and developers set it."""
    version_retention_days: NotRequired[Optional[int]]
    """For how many days versions of documents are kept after they were changed or deleted. By default, none are kept. A shorter time applies to existing versions too; null deletes them."""



class GetInboundUrlResponse(TypedDict):
    url: str
    """The URL."""
    signed: bool
    """Whether posts must be signed as in Standard Webhooks."""
    previous_secret_until: NotRequired[str]
    """Until then, signatures with the previous secret are also accepted."""



class RotateInboundUrlResponse(TypedDict):
    url: str
    """The URL."""
    signed: bool
    """Whether posts must be signed as in Standard Webhooks."""
    previous_secret_until: NotRequired[str]
    """Until then, signatures with the previous secret are also accepted."""



class SetInboundSecretRequest(TypedDict):
    secret: NotRequired[str]
    """whsec_…, the secret that the sender provides. Default: a new one, to give to the sender."""
    overlap_seconds: NotRequired[int]
    """How long signatures with the previous secret are also accepted, in seconds. Default 86400, a day."""



class SetInboundSecretResponse(TypedDict):
    secret: str
    """whsec_…, only in this response: it cannot be read again."""
    previous_secret_until: NotRequired[str]
    """Until when the previous secret is valid too, in ISO 8601."""



class IngestIntoKnowledgeSourceRequestContent(TypedDict):
    """The text."""

    data: str
    """The document: text, or its bytes in base64."""
    data_encoding: NotRequired[Literal["raw", "base64"]]
    """Default raw."""
    content_type: NotRequired[str]
    """The media type."""
    filename: NotRequired[str]
    """The name of the file."""



class IngestIntoKnowledgeSourceRequest(TypedDict):
    content: NotRequired[IngestIntoKnowledgeSourceRequestContent]
    """The text."""
    file: NotRequired[str]
    """The id (fil_…) of an uploaded file."""
    pull: NotRequired[bool]
    """Pull again from the source's configuration."""
    title: NotRequired[str]
    """Display title."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map."""
    acl: NotRequired[DocumentAcl]
    dedupe: NotRequired[bool]
    """Reuse a document with the same bytes and the same readers. Push only."""
    on_active: NotRequired[Literal["return", "queue", "error"]]
    """What to do while another ingestion of the source is active: return that one (default), queue, or 409."""
    confirm_deletions: NotRequired[bool]
    """With `pull`: delete what the listing no longer contains, even if it is more than half of the source."""



class IngestBatchIntoKnowledgeSourceRequestItemsContent(TypedDict):
    """The text."""

    data: str
    """The document: text, or its bytes in base64."""
    data_encoding: NotRequired[Literal["raw", "base64"]]
    """Default raw."""
    content_type: NotRequired[str]
    """The media type."""
    filename: NotRequired[str]
    """The name of the file."""



class IngestBatchIntoKnowledgeSourceRequestItems(TypedDict):
    content: NotRequired[IngestBatchIntoKnowledgeSourceRequestItemsContent]
    """The text."""
    file: NotRequired[str]
    """The file (`fil_…`)."""
    title: NotRequired[str]
    """Display title."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map."""
    dedupe: NotRequired[bool]
    """Whether content that the source already has is reused."""



class IngestBatchIntoKnowledgeSourceRequest(TypedDict):
    items: List[IngestBatchIntoKnowledgeSourceRequestItems]
    """The items, in order."""
    acl: NotRequired[DocumentAcl]
    on_active: NotRequired[Literal["return", "queue", "error"]]
    """What to do while another ingestion of the source is active: return that one (default), queue, or 409."""



class KnowledgeIngestionPage(Page):
    """One page of a list."""

    data: List[KnowledgeIngestion]
    """The entries."""



class KnowledgeDocumentPage(Page):
    """One page of a list."""

    data: List[KnowledgeDocument]
    """The entries."""



class UpdateKnowledgeDocumentRequestContent(TypedDict):
    """The text."""

    data: str
    """The document: text, or its bytes in base64."""
    data_encoding: NotRequired[Literal["raw", "base64"]]
    """Default raw."""
    content_type: NotRequired[str]
    """The media type."""
    filename: NotRequired[str]
    """The name of the file."""



class UpdateKnowledgeDocumentRequest(TypedDict):
    content: NotRequired[UpdateKnowledgeDocumentRequestContent]
    """The text."""
    file: NotRequired[str]
    """The file (`fil_…`)."""
    title: NotRequired[str]
    """Display title."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map."""
    acl: NotRequired[Optional[DocumentAcl]]
    """The readers of the new content. null: every reader of the source. Omitted: those of the old one."""



class UpdateKnowledgeDocumentAclRequest(TypedDict):
    """Either `grants`, which replaces the list, or `add` and `remove`, which change it."""

    grants: NotRequired[List[ReadGrant]]
    """Who may do what: the whole list."""
    add: NotRequired[List[ReadGrant]]
    """Grants to add, or to merge with those of the same principal."""
    remove: NotRequired[List[ReadGrantRemoval]]
    """Principals whose grants are removed."""



class KnowledgeDocumentChunkPage(Page):
    """One page of a list."""

    data: List[KnowledgeDocumentChunk]
    """The entries."""



class SearchKnowledgeSourceRequest(TypedDict):
    query: str
    """The text to search for."""
    mode: NotRequired[Literal["hybrid", "vector", "fulltext"]]
    """Default hybrid."""
    max_results: NotRequired[int]
    """Default 20."""
    min_similarity: NotRequired[float]
    """Minimum cosine similarity of vector hits."""
    recency_days: NotRequired[float]
    """Only documents that were indexed within this many days."""
    filter: NotRequired[Dict[str, Any]]
    """Conditions on document metadata."""
    explain: NotRequired[bool]
    """How the score came about, if the search asked for it."""
    rerank: NotRequired[bool]
    """Whether to rerank. Default true in mode hybrid if the server has a reranker."""
    rerank_model: NotRequired[str]
    """A model for reranking, or an alias, that orders the results instead of the server’s reranker."""
    highlights: NotRequired[bool]
    """Whether to return the positions of the query's words in each hit."""
    context: NotRequired[int]
    """Number of neighbouring chunks to return on either side of each hit."""
    group_by: NotRequired[Literal["document"]]
    """Returns only the best hit of each document."""
    facets: NotRequired[List[str]]
    """Members of document metadata whose values to count."""



class SearchKnowledgeSourceResponseFacets(TypedDict):
    value: Union[str, float, bool]
    """The value."""
    count: int
    """How many there are."""



class SearchKnowledgeSourceResponse(TypedDict):
    data: List[SearchHit]
    """The entries."""
    facets: NotRequired[Dict[str, List[SearchKnowledgeSourceResponseFacets]]]
    """How many documents among the best 1,000 passages have each value; the 20 most frequent."""
    vectors_unavailable: NotRequired[str]
    """Why the query has no vector. The results are those of full-text search."""
    rerank_unavailable: NotRequired[str]
    """Why the results are not reranked."""
    explain: NotRequired[Dict[str, Any]]
    """How the score came about, if the search asked for it."""



class SearchKnowledgeRequest(TypedDict):
    query: str
    """The text to search for."""
    mode: NotRequired[Literal["hybrid", "vector", "fulltext"]]
    """Default hybrid."""
    max_results: NotRequired[int]
    """Default 20."""
    min_similarity: NotRequired[float]
    """Minimum cosine similarity of vector hits."""
    recency_days: NotRequired[float]
    """Only documents that were indexed within this many days."""
    filter: NotRequired[Dict[str, Any]]
    """Conditions on document metadata."""
    explain: NotRequired[bool]
    """How the score came about, if the search asked for it."""
    rerank: NotRequired[bool]
    """Whether to rerank. Default true in mode hybrid if the server has a reranker."""
    rerank_model: NotRequired[str]
    """A model for reranking, or an alias, that orders the results instead of the server’s reranker."""
    highlights: NotRequired[bool]
    """Whether to return the positions of the query's words in each hit."""
    context: NotRequired[int]
    """Number of neighbouring chunks to return on either side of each hit."""
    group_by: NotRequired[Literal["document"]]
    """Returns only the best hit of each document."""
    facets: NotRequired[List[str]]
    """Members of document metadata whose values to count."""
    source_types: NotRequired[List[str]]
    """Only sources of these types."""
    sources: NotRequired[List[str]]
    """cso_…; only these sources."""



class SearchKnowledgeResponseFacets(TypedDict):
    value: Union[str, float, bool]
    """The value."""
    count: int
    """How many there are."""



class SearchKnowledgeResponse(TypedDict):
    data: List[SearchHit]
    """The entries."""
    facets: NotRequired[Dict[str, List[SearchKnowledgeResponseFacets]]]
    """How many documents among the best 1,000 passages have each value; the 20 most frequent."""
    vectors_unavailable: NotRequired[str]
    """Why the query has no vector. The results are those of full-text search."""
    rerank_unavailable: NotRequired[str]
    """Why the results are not reranked."""
    explain: NotRequired[Dict[str, Any]]
    """How the score came about, if the search asked for it."""



class SearchAgentKnowledgeRequest(TypedDict):
    query: str
    """The text to search for."""
    mode: NotRequired[Literal["hybrid", "vector", "fulltext"]]
    """Default hybrid."""
    max_results: NotRequired[int]
    """Default 20."""
    min_similarity: NotRequired[float]
    """Minimum cosine similarity of vector hits."""
    recency_days: NotRequired[float]
    """Only documents that were indexed within this many days."""
    filter: NotRequired[Dict[str, Any]]
    """Conditions on document metadata."""
    explain: NotRequired[bool]
    """How the score came about, if the search asked for it."""
    rerank: NotRequired[bool]
    """Whether to rerank. Default true in mode hybrid if the server has a reranker."""
    rerank_model: NotRequired[str]
    """A model for reranking, or an alias, that orders the results instead of the server’s reranker."""
    highlights: NotRequired[bool]
    """Whether to return the positions of the query's words in each hit."""
    context: NotRequired[int]
    """Number of neighbouring chunks to return on either side of each hit."""
    group_by: NotRequired[Literal["document"]]
    """Returns only the best hit of each document."""
    facets: NotRequired[List[str]]
    """Members of document metadata whose values to count."""
    source_types: NotRequired[List[str]]
    """Only sources of these types."""



class SearchAgentKnowledgeResponseFacets(TypedDict):
    value: Union[str, float, bool]
    """The value."""
    count: int
    """How many there are."""



class SearchAgentKnowledgeResponse(TypedDict):
    data: List[SearchHit]
    """The entries."""
    facets: NotRequired[Dict[str, List[SearchAgentKnowledgeResponseFacets]]]
    """How many documents among the best 1,000 passages have each value; the 20 most frequent."""
    vectors_unavailable: NotRequired[str]
    """Why the query has no vector. The results are those of full-text search."""
    rerank_unavailable: NotRequired[str]
    """Why the results are not reranked."""
    explain: NotRequired[Dict[str, Any]]
    """How the score came about, if the search asked for it."""



class StartKnowledgeSyncRequest(TypedDict):
    mode: Literal["full", "changes"]
    """`full`: everything is sent, and completing the sync deletes what was not. `changes`: only what changed since the last cursor."""
    expires_in_seconds: NotRequired[int]
    """How long after its last batch another connector must wait to resume or replace it. Default 600."""
    take_over: NotRequired[bool]
    """Resume or replace a sync that has not expired. Its connector gets 409 from then on."""



class KnowledgeSyncPage(Page):
    """One page of a list."""

    data: List[KnowledgeSync]
    """The entries."""



class PutKnowledgeSyncBatchRequestUpsertsContent(TypedDict):
    """The text."""

    data: str
    """The document: text, or its bytes in base64."""
    data_encoding: NotRequired[Literal["raw", "base64"]]
    """Default raw."""
    content_type: NotRequired[str]
    """The media type."""
    filename: NotRequired[str]
    """The name of the file."""



class PutKnowledgeSyncBatchRequestUpserts(TypedDict):
    external_id: str
    """The id of the document where it comes from. It names one document of the source."""
    order: NotRequired[int]
    """Its version. A change with a lower one than the stored document’s is skipped."""
    content: NotRequired[PutKnowledgeSyncBatchRequestUpsertsContent]
    """The text."""
    file: NotRequired[str]
    """The id (fil_…) of an uploaded file, instead of `content`."""
    title: NotRequired[str]
    """Display title."""
    metadata: NotRequired[Dict[str, Any]]
    """Free key-value map. Omitted, it becomes empty."""
    source_url: NotRequired[str]
    """Where a person finds the document."""



class PutKnowledgeSyncBatchRequestDeletes(TypedDict):
    external_id: str
    """The id of the document where it comes from. It names one document of the source."""
    order: NotRequired[int]
    """Its version. A change with a lower one than the stored document’s is skipped."""



class PutKnowledgeSyncBatchRequest(TypedDict):
    fence: int
    """The fence that the sync was started or resumed with."""
    upserts: NotRequired[List[PutKnowledgeSyncBatchRequestUpserts]]
    """New and changed documents."""
    deletes: NotRequired[List[PutKnowledgeSyncBatchRequestDeletes]]
    """Deleted documents."""
    cursor: NotRequired[Optional[str]]
    """Where the connector continues after this batch. It is stored with the batch, and means nothing to the server."""



class CompleteKnowledgeSyncRequest(TypedDict):
    fence: NotRequired[int]
    """The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync."""
    batches: int
    """The number of batches that the connector sent."""
    documents: int
    """The number of upserts in them."""
    confirm_deletions: NotRequired[bool]
    """Delete what was not seen even if it is more than half of the source."""



class AbortKnowledgeSyncRequest(TypedDict):
    fence: NotRequired[int]
    """The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync."""



class KnowledgeDocumentVersionPage(Page):
    """One page of a list."""

    data: List[KnowledgeDocumentVersion]
    """The entries."""



class RestoreKnowledgeSourceRequest(TypedDict):
    at: str
    """The time, as in `2026-03-01T12:00:00Z`."""
    confirm_deletions: NotRequired[bool]
    """Delete documents even if they are more than half of the source."""



class CreateAutomationRequestConcurrency(TypedDict):
    """Limits active runs with the same value in their payload. Only with a workflow."""

    key: str
    """The path of a member of the payload, such as `customer.id`."""
    limit: int
    """How many runs with the same value may be active at the same time."""



class CreateAutomationRequestRate(TypedDict):
    """Limits how many runs start in any time of this length. The others wait. Only with a workflow."""

    limit: int
    """How many runs may start in this time."""
    per: str
    """The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most."""
    key: NotRequired[str]
    """The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one."""



class CreateAutomationRequestRetention(TypedDict):
    """How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever."""

    days: NotRequired[int]
    """Days after their end for which completed and cancelled runs are kept. Default: no limit."""
    runs: NotRequired[int]
    """How many completed and cancelled runs of each automation are kept, the newest. Default: no limit."""
    failed_days: NotRequired[int]
    """Days for which failed runs are kept. Default: `days`."""
    failed_runs: NotRequired[int]
    """How many failed runs of each automation are kept, the newest. Default: `runs`."""
    files: NotRequired[bool]
    """Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false."""



class CreateAutomationRequest(TypedDict):
    name: str
    """The name."""
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[Optional[str]]
    """A text for people."""
    trigger: NotRequired[Optional[str]]
    """The name of the event that starts a run."""
    filter: NotRequired[Optional[str]]
    """A JSONata expression over the payload. The event starts a run only if it is true."""
    schedule: NotRequired[Optional[str]]
    """A cron expression with five fields."""
    timezone: NotRequired[str]
    """The time zone of the schedule, such as `Europe/Berlin`. Default UTC."""
    workflow: NotRequired[Optional[Dict[str, Any]]]
    """A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null."""
    input_schema: NotRequired[Optional[Dict[str, Any]]]
    """JSON Schema that the payload of an invocation must match, or null."""
    invoke_auth: NotRequired[Literal["any", "secret_key", "user"]]
    """Which callers may invoke it: end users, secret keys, or any."""
    run_as_user: NotRequired[Optional[str]]
    """The user (`usr_…`) as whom runs act."""
    run_as_agent: NotRequired[Optional[str]]
    """The agent (`agt_…`) as which runs act."""
    max_concurrent_runs: NotRequired[Optional[int]]
    """How many runs may be active at the same time."""
    max_pending_runs: NotRequired[Optional[int]]
    """How many runs may wait for their turn. Beyond it, invocations are 429."""
    concurrency: NotRequired[Optional[CreateAutomationRequestConcurrency]]
    """Limits active runs with the same value in their payload."""
    rate: NotRequired[Optional[CreateAutomationRequestRate]]
    """How many runs may start in a time. The others wait for their turn."""
    timeout_seconds: NotRequired[Optional[int]]
    """How many seconds a run may take."""
    retention: NotRequired[Optional[CreateAutomationRequestRetention]]
    """How long runs are kept after their end. Without it, as the app says."""
    metadata: NotRequired[Dict[str, Any]]
    """Stored as given; replaces the whole map."""
    type: Literal["trigger", "scheduled", "invoked"]
    """The type."""
    org: NotRequired[str]
    """The organisation (`org_…`)."""
    team: NotRequired[str]
    """The team (`tea_…`)."""
    user: NotRequired[str]
    """The user (`usr_…`)."""



class AutomationPage(Page):
    """One page of a list."""

    data: List[Automation]
    """The entries."""



class UpdateAutomationRequestConcurrency(TypedDict):
    """Limits active runs with the same value in their payload. Only with a workflow."""

    key: str
    """The path of a member of the payload, such as `customer.id`."""
    limit: int
    """How many runs with the same value may be active at the same time."""



class UpdateAutomationRequestRate(TypedDict):
    """Limits how many runs start in any time of this length. The others wait. Only with a workflow."""

    limit: int
    """How many runs may start in this time."""
    per: str
    """The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most."""
    key: NotRequired[str]
    """The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one."""



class UpdateAutomationRequestRetention(TypedDict):
    """How long runs are kept after their end, at least a day. A run that exceeds one of the limits is deleted with its journal. Without members, runs are kept for ever."""

    days: NotRequired[int]
    """Days after their end for which completed and cancelled runs are kept. Default: no limit."""
    runs: NotRequired[int]
    """How many completed and cancelled runs of each automation are kept, the newest. Default: no limit."""
    failed_days: NotRequired[int]
    """Days for which failed runs are kept. Default: `days`."""
    failed_runs: NotRequired[int]
    """How many failed runs of each automation are kept, the newest. Default: `runs`."""
    files: NotRequired[bool]
    """Whether the files that only deleted runs made are deleted with them, unless something else refers to them. Default: false."""



class UpdateAutomationRequest(TypedDict):
    name: NotRequired[str]
    """The name."""
    lookup_key: NotRequired[Optional[str]]
    """A name for programs, unique in the app or sandbox."""
    description: NotRequired[Optional[str]]
    """A text for people."""
    trigger: NotRequired[Optional[str]]
    """The name of the event that starts a run."""
    filter: NotRequired[Optional[str]]
    """A JSONata expression over the payload. The event starts a run only if it is true."""
    schedule: NotRequired[Optional[str]]
    """A cron expression with five fields."""
    timezone: NotRequired[str]
    """The time zone of the schedule, such as `Europe/Berlin`. Default UTC."""
    workflow: NotRequired[Optional[Dict[str, Any]]]
    """A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null."""
    input_schema: NotRequired[Optional[Dict[str, Any]]]
    """JSON Schema that the payload of an invocation must match, or null."""
    invoke_auth: NotRequired[Literal["any", "secret_key", "user"]]
    """Which callers may invoke it: end users, secret keys, or any."""
    run_as_user: NotRequired[Optional[str]]
    """The user (`usr_…`) as whom runs act."""
    run_as_agent: NotRequired[Optional[str]]
    """The agent (`agt_…`) as which runs act."""
    max_concurrent_runs: NotRequired[Optional[int]]
    """How many runs may be active at the same time."""
    max_pending_runs: NotRequired[Optional[int]]
    """How many runs may wait for their turn. Beyond it, invocations are 429."""
    concurrency: NotRequired[Optional[UpdateAutomationRequestConcurrency]]
    """Limits active runs with the same value in their payload."""
    rate: NotRequired[Optional[UpdateAutomationRequestRate]]
    """How many runs may start in a time. The others wait for their turn."""
    timeout_seconds: NotRequired[Optional[int]]
    """How many seconds a run may take."""
    retention: NotRequired[Optional[UpdateAutomationRequestRetention]]
    """How long runs are kept after their end. Without it, as the app says."""
    metadata: NotRequired[Dict[str, Any]]
    """Stored as given; replaces the whole map."""



class CheckAutomationRequest(TypedDict):
    text: str
    """In YAML or JSON: the body of POST /automations, or a bare graph."""



class CheckAutomationResponseProblems(TypedDict):
    line: int
    """The line, from 1."""
    column: int
    """The column, from 1."""
    node: NotRequired[str]
    """The id of the node."""
    message: str
    """A text for people."""



class CheckAutomationResponse(TypedDict):
    problems: List[CheckAutomationResponseProblems]
    """With their position in the text, lines and columns from 1; empty when it is valid."""



class ListAutomationRunsPage(Page):
    """One page of a list."""

    data: List[AutomationRun]
    """The entries."""



class WorkflowVersionPage(Page):
    """One page of a list."""

    data: List[WorkflowVersion]
    """The entries."""



class InvocableAutomationPage(Page):
    """One page of a list."""

    data: List[InvocableAutomation]
    """The entries."""



class InvokeAutomationRequest(TypedDict):
    payload: NotRequired[Dict[str, Any]]
    """Available to the graph as `$`; validated against `input_schema`."""
    participants: NotRequired[Dict[str, str]]
    """Values that expressions of the run can read as `$participants`."""
    idempotency_key: NotRequired[str]
    """The same key returns the first run again, for at least a day."""



class RetryAutomationRunRequestFrom(TypedDict):
    node: str
    """The node that runs again; what follows it also does."""
    sequence: NotRequired[int]
    """The `node_started` entry to continue from. Required if the node ran more than once."""



_RetryAutomationRunRequestKeywords = TypedDict("_RetryAutomationRunRequestKeywords", {"from": "NotRequired[Union[Literal[\"failure\"], RetryAutomationRunRequestFrom]]"})


class RetryAutomationRunRequest(_RetryAutomationRunRequestKeywords):
    outputs: NotRequired[Dict[str, Any]]
    """Outputs, by node, that replace the kept ones. Only with `from`."""
    workflow_version: NotRequired[int]
    """The version of the workflow to continue with. By default the one of the old run. Only with `from`."""
    payload: NotRequired[Dict[str, Any]]
    """Another payload, for a new run from the beginning. Only for runs of type invoked, and not with `from`."""



class SignalAutomationRunRequest(TypedDict):
    name: str
    """The name."""
    payload: NotRequired[Any]
    """The data that comes with it."""



class ClaimAutomationRunRequest(TypedDict):
    lease_seconds: int
    """For how many seconds the claim is valid unless it is renewed."""



class ReportAutomationRunRequestError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class ReportAutomationRunRequest(TypedDict):
    status: Literal["running", "completed", "failed"]
    """The status."""
    result: NotRequired[Any]
    """What the run returned."""
    error: NotRequired[ReportAutomationRunRequestError]
    """Why it failed."""
    claim: NotRequired[str]
    """The `claim` of the response to the claim. 409 `claim_lost` if the run was claimed again since."""



class ClaimAutomationWorkRequest(TypedDict):
    automations: List[str]
    """Ids or lookup keys of automations whose workflow is a program."""
    code_version: str
    """The version of your code. A run that a version did not fit is not offered to it again."""
    lease_seconds: int
    """The run may be claimed again this long after the last request with the claim."""
    wait_seconds: NotRequired[int]
    """How long to wait for a run. By default, the response is sent immediately."""



class ReadClaimedJournalRequest(TypedDict):
    claim: str
    """The claim, `clm_…`. Another claim on the run makes it invalid."""
    after_cursor: str
    """The `after_cursor` of the page before."""



class AppendRunEntriesRequestEntriesRetry(TypedDict):
    """For kind `step`. The server schedules the next attempt."""

    max_attempts: int
    """Attempts in total, with the first one."""
    initial_seconds: NotRequired[float]
    """The pause before the second attempt. Default 1."""
    factor: NotRequired[float]
    """Multiplies each following pause. Default 2."""



class AppendRunEntriesRequestEntriesError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class AppendRunEntriesRequestEntries(TypedDict):
    type: Literal["node_started", "node_completed", "node_failed", "run_completed", "run_failed"]
    """The server itself writes all other entries."""
    node_id: NotRequired[str]
    """The step: its scope, name and occurrence. Required for all `node_` entries."""
    kind: NotRequired[Literal["step", "value", "sleep", "signal", "child", "approve"]]
    """Of `node_started`: `step` is executed by the program; `value` is a recorded value; the server ends `sleep`, `signal`, `child` and `approve`."""
    retry: NotRequired[AppendRunEntriesRequestEntriesRetry]
    """For kind `step`. The server schedules the next attempt."""
    seconds: NotRequired[float]
    """For kind `sleep`."""
    until: NotRequired[str]
    """For kind `sleep`: an ISO 8601 time."""
    name: NotRequired[str]
    """For kind `signal`: the name of the signal."""
    timeout_seconds: NotRequired[float]
    """For kinds `signal` and `approve`: the step then fails with `timeout`."""
    question: NotRequired[str]
    """For kind `approve`: what people are asked."""
    form: NotRequired[Dict[str, Any]]
    """For kind `approve`: the JSON Schema of the answer. Default: `ok`, and an optional `comment`."""
    users: NotRequired[List[str]]
    """For kind `approve`: ids of users. Each of them may answer."""
    teams: NotRequired[List[str]]
    """For kind `approve`: ids of teams. Each of their members may answer."""
    roles: NotRequired[List[Literal["admin", "member", "viewer"]]]
    """For kind `approve`: those who have one of these roles in `org` may answer."""
    org: NotRequired[str]
    """For kind `approve`: the organization of `roles`. Default: that of the automation."""
    exclude_invoker: NotRequired[bool]
    """For kind `approve`: the user who invoked the run may not answer."""
    automation: NotRequired[str]
    """For kind `child`: the id or lookup key of an invoked automation."""
    payload: NotRequired[Any]
    """The output of a step, the result of the run, or the payload for a child run."""
    error: NotRequired[AppendRunEntriesRequestEntriesError]
    """Why it failed."""
    retryable: NotRequired[bool]
    """Of `node_failed`: false prevents further attempts."""



class AppendRunEntriesRequestReleaseWorkflowChanged(TypedDict):
    """The code does not fit the journal: the run waits for another version of the code."""

    expected: Any
    """What the journal has."""
    found: Any
    """What the code asked for instead."""



class AppendRunEntriesRequestRelease(TypedDict):
    """Ends the claim after these entries. The run is ready again when something has happened in it."""

    workflow_changed: NotRequired[AppendRunEntriesRequestReleaseWorkflowChanged]
    """The code does not fit the journal: the run waits for another version of the code."""



class AppendRunEntriesRequest(TypedDict):
    claim: str
    """The claim, `clm_…`. Another claim on the run makes it invalid."""
    after_sequence: int
    """The `sequence` of the last response."""
    entries: List[AppendRunEntriesRequestEntries]
    """One request may end a step and start the next. An empty list only renews the claim."""
    release: NotRequired[AppendRunEntriesRequestRelease]
    """Ends the claim after these entries. The run is ready again when something has happened in it."""
    wait_seconds: NotRequired[int]
    """Without entries and `release`: waits this long for an entry of the server."""



class ReadClaimedRunRequest(TypedDict):
    code_version: NotRequired[str]
    """The version of your code, which its entries then name."""
    after_cursor: NotRequired[str]
    """The `after_cursor` of the page before. Without it: the beginning."""



class AppendClaimedRunRequestEntriesRetry(TypedDict):
    """For kind `step`. The server schedules the next attempt."""

    max_attempts: int
    """Attempts in total, with the first one."""
    initial_seconds: NotRequired[float]
    """The pause before the second attempt. Default 1."""
    factor: NotRequired[float]
    """Multiplies each following pause. Default 2."""



class AppendClaimedRunRequestEntriesError(TypedDict):
    """Why it failed."""

    code: str
    """A stable code for programs."""
    message: str
    """A text for people."""



class AppendClaimedRunRequestEntries(TypedDict):
    type: Literal["node_started", "node_completed", "node_failed", "run_completed", "run_failed"]
    """The server itself writes all other entries."""
    node_id: NotRequired[str]
    """The step: its scope, name and occurrence. Required for all `node_` entries."""
    kind: NotRequired[Literal["step", "value", "sleep", "signal", "child", "approve"]]
    """Of `node_started`: `step` is executed by the program; `value` is a recorded value; the server ends `sleep`, `signal`, `child` and `approve`."""
    retry: NotRequired[AppendClaimedRunRequestEntriesRetry]
    """For kind `step`. The server schedules the next attempt."""
    seconds: NotRequired[float]
    """For kind `sleep`."""
    until: NotRequired[str]
    """For kind `sleep`: an ISO 8601 time."""
    name: NotRequired[str]
    """For kind `signal`: the name of the signal."""
    timeout_seconds: NotRequired[float]
    """For kinds `signal` and `approve`: the step then fails with `timeout`."""
    question: NotRequired[str]
    """For kind `approve`: what people are asked."""
    form: NotRequired[Dict[str, Any]]
    """For kind `approve`: the JSON Schema of the answer. Default: `ok`, and an optional `comment`."""
    users: NotRequired[List[str]]
    """For kind `approve`: ids of users. Each of them may answer."""
    teams: NotRequired[List[str]]
    """For kind `approve`: ids of teams. Each of their members may answer."""
    roles: NotRequired[List[Literal["admin", "member", "viewer"]]]
    """For kind `approve`: those who have one of these roles in `org` may answer."""
    org: NotRequired[str]
    """For kind `approve`: the organization of `roles`. Default: that of the automation."""
    exclude_invoker: NotRequired[bool]
    """For kind `approve`: the user who invoked the run may not answer."""
    automation: NotRequired[str]
    """For kind `child`: the id or lookup key of an invoked automation."""
    payload: NotRequired[Any]
    """The output of a step, the result of the run, or the payload for a child run."""
    error: NotRequired[AppendClaimedRunRequestEntriesError]
    """Why it failed."""
    retryable: NotRequired[bool]
    """Of `node_failed`: false prevents further attempts."""



class AppendClaimedRunRequestReleaseWorkflowChanged(TypedDict):
    """The code does not fit the journal: the run waits for another version of the code."""

    expected: Any
    """What the journal has."""
    found: Any
    """What the code asked for instead."""



class AppendClaimedRunRequestRelease(TypedDict):
    """Ends the claim after these entries. The run is ready again when something has happened in it."""

    workflow_changed: NotRequired[AppendClaimedRunRequestReleaseWorkflowChanged]
    """The code does not fit the journal: the run waits for another version of the code."""



class AppendClaimedRunRequest(TypedDict):
    after_sequence: int
    """The `sequence` of the last response."""
    entries: List[AppendClaimedRunRequestEntries]
    """One request may end a step and start the next. An empty list only renews the claim."""
    release: NotRequired[AppendClaimedRunRequestRelease]
    """Ends the claim after these entries. The run is ready again when something has happened in it."""
    wait_seconds: NotRequired[int]
    """Without entries and `release`: waits this long for an entry of the server."""



class ListAppSecretsResponse(TypedDict):
    data: List[AppSecret]
    """The entries."""



class PutAppSecretRequest(TypedDict):
    value: str
    """The value."""



class ApprovalPage(Page):
    """One page of a list."""

    data: List[Approval]
    """The entries."""



class AnswerApprovalRequest(TypedDict):
    data: Any
    """The answer, which must match the form."""



class CreateApprovalLinkRequest(TypedDict):
    to: str
    """To whom you send the link, as the journal will name its holder."""
    expires_in_seconds: NotRequired[int]
    """Default 7 days."""



class AnswerLinkedApprovalRequest(TypedDict):
    data: Any
    """The answer, which must match the form."""



class EmitEventRequest(TypedDict):
    name: str
    """The name."""
    payload: NotRequired[Any]
    """The data that comes with it."""



class EmitEventResponse(TypedDict):
    id: str
    """evt_…"""
    name: str
    """The name."""



class VerifyCitationsRequestVersions(TypedDict):
    document: str
    """cdo_…; one of `documents`."""
    version: int
    """The number of its version."""



class VerifyCitationsRequest(TypedDict):
    text: NotRequired[str]
    """A text from anywhere. What stands in quotation marks, and blocks of lines with >, are its quotes: at most 50."""
    quotes: NotRequired[List[str]]
    """The quotes themselves, without quotation marks. Exactly one of `text` and `quotes`."""
    documents: NotRequired[List[str]]
    """cdo_…; only these documents. In `text`, [1] cites the first of them. Not with `sources` or `agent`."""
    versions: NotRequired[List[VerifyCitationsRequestVersions]]
    """Which versions of `documents` to read. By default, the current ones."""
    sources: NotRequired[List[str]]
    """cso_…; only these sources. By default, everything that the caller may read."""
    agent: NotRequired[str]
    """agt_… or the lookup key of the agent; only its sources. Not with `sources`."""
    boxes: NotRequired[bool]
    """Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false."""



class CreateAnswerRequest(TypedDict):
    query: str
    """The question."""
    sources: NotRequired[List[str]]
    """cso_…; only these sources. By default, everything that the caller may read."""
    agent: NotRequired[str]
    """agt_… or the lookup key of the agent; only its sources. Not with `sources`."""
    model: NotRequired[str]
    """A model or an alias of the app or of the operator. By default, the default of the operator."""
    instructions: NotRequired[str]
    """More for the model, such as a tone or a length."""
    unsupported: NotRequired[Literal["mark", "remove", "refuse"]]
    """What happens to a sentence that cites nothing, misquotes, or is not supported in the verdict of a judge: it is marked (the default), it is removed, or there is no answer."""
    max_results: NotRequired[int]
    """The number of passages that the model reads. Default 12."""
    max_output_tokens: NotRequired[int]
    """The most that the model writes. Default 1024."""
    boxes: NotRequired[bool]
    """Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false."""
    stream: NotRequired[bool]
    """Sends events instead (text/event-stream): `delta` with text as it arrives (only with `mark`), `sentence` with each sentence after its check (with a judge, after its verdict, up to eight together), then `answer` with the whole answer, or `error`."""


WebhookMessage = Union[
    "FileCreatedMessage",
    "FileUpdatedMessage",
    "ExtractionCompletedMessage",
    "ExtractionFailedMessage",
    "IngestionSucceededMessage",
    "IngestionFailedMessage",
    "KnowledgeSourceCreatedMessage",
    "KnowledgeSourceUpdatedMessage",
    "KnowledgeSourceDeletedMessage",
    "AutomationRunCompletedMessage",
    "AutomationRunFailedMessage",
    "ApprovalRequestedMessage",
    "ApprovalAnsweredMessage",
    "ModelBudgetReachedMessage",
    "AutomationRunReadyMessage",
    "WebhookTestMessage",
]
