"""What the API answers, with its names. A test compares them with the OpenAPI document."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class Organization(TypedDict):
    id: str
    name: str


class AutoRun(TypedDict):
    enabled: Optional[bool]
    frequency: Optional[str]


class User(TypedDict):
    email: str
    name: str


class TriggerSource(TypedDict):
    slug: str
    name: str


class TriggerEvent(TypedDict):
    slug: str
    name: str


class SubagentSource(TypedDict):
    id: Optional[str]
    name: str
    type: str


class Trigger(TypedDict):
    id: str
    name: str
    is_active: bool
    trigger_source: TriggerSource
    events: List[TriggerEvent]
    filters: Optional[Dict[str, Any]]
    input_message: str
    subagent_sources: List[SubagentSource]


class File(TypedDict):
    id: str
    name: str
    path: List[str]


class Workflow(TypedDict):
    id: str
    name: str
    description: str
    #: `company_wide` or `only_me`; new values may appear.
    scope: str
    is_active: bool
    auto_run: AutoRun
    users: List[User]
    triggers: List[Trigger]
    files: List[File]
    created_at: str
    updated_at: str


class PageInfo(TypedDict):
    #: For the next page; None on the last one.
    next_cursor: Optional[str]
    has_more: bool


class Page(TypedDict):
    data: List[Workflow]
    pagination: PageInfo


class StartConfirmation(TypedDict):
    #: Of this start, and of its run.
    id: str
    workflow_id: str
    session_id: str


class RunError(TypedDict):
    code: str
    message: str


class SessionRun(TypedDict):
    #: The `id` of the start.
    id: str
    workflow_id: str
    session_id: str
    #: Position in the session, from 1.
    number: int
    #: `queued`, `running`, `waiting`, `succeeded`, `failed` or `cancelled`; new values may appear.
    status: str
    #: Why it failed.
    error: Optional[RunError]
    created_at: str
    started_at: Optional[str]
    #: None before its end.
    finished_at: Optional[str]


class Delivery(TypedDict):
    id: str
    source_id: str
    source_name: str
    #: `in_flight`, `accepted`, `rejected`, `timed_out`, `unreachable`, `refused`, `invalid` or `unknown`; new values
    #: may appear.
    outcome: str
    #: The HTTP status of the endpoint; None without one.
    status: Optional[int]
    created_at: str


class Run(SessionRun):
    #: The payloads that were sent, oldest first.
    deliveries: List[Delivery]


class Session(TypedDict):
    id: str
    is_open: bool
    start_count: int
    created_at: str
    closed_at: Optional[str]
    #: The latest runs, the last one first, at most 20.
    runs: List[SessionRun]


class FieldError(TypedDict):
    #: Nested names are joined with a dot; `body` is the whole body.
    field: str
    #: Stable; match on it.
    code: str
    message: str


class RunEventData(TypedDict):
    at: str
    #: The `id` of the start: `get_run` has the rest.
    run_id: str
    workflow_id: str
    session_id: str
    #: Of `run.failed`.
    error_code: Optional[str]
    #: Of `approval.waiting`: the payload that waits, and the webhook source that it is for.
    delivery_id: Optional[str]
    source_id: Optional[str]


class RunEvent(TypedDict):
    """What happened to one run. The same event may come again: compare `id`, which is `X-Delivery-Id`."""

    id: str
    #: `run.failed`, `run.cancelled` or `approval.waiting`.
    type: str
    organization_id: str
    created_at: str
    text: str
    data: RunEventData
