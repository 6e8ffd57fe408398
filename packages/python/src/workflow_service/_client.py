from __future__ import annotations

import dataclasses
import json
import re
import secrets
import time
from typing import Any, AsyncIterator, Callable, Dict, Generic, Iterator, Mapping, NamedTuple, Optional, Type, TypeVar
from urllib.parse import quote, urlencode

import anyio
import httpx

from ._errors import ApiError, ApiTimeoutError
from ._request import Call, CallOptions, is_text
from ._types import Organization, Page, Run, Session, StartConfirmation, Workflow

# The version is that of pyproject.toml.
_USER_AGENT = "workflow-service-python/1.0.0"
# How long one request waits for the end of a run, in seconds, beyond `timeout`.
_WAIT_SECONDS = 10
# Seconds from one such request to the next, also if it was answered sooner.
_MIN_WAIT = 1.0
_NO_OPTIONS = CallOptions()
_ADDRESS = re.compile(r"https?://[^/@?#]+(?:/[^?#]*)?", re.IGNORECASE)
_Value = TypeVar("_Value")
_Http = TypeVar("_Http", httpx.Client, httpx.AsyncClient)


class _Limits(NamedTuple):
    max_retries: int = 2
    timeout: float = 15.0
    total_timeout: float = 90.0


class _Client(Generic[_Http]):
    """What both clients have: it makes their calls. Raises ValueError for what cannot be sent."""

    _http_type: Type[_Http]

    def __init__(
        self,
        api_key: Optional[str],
        base_url: Optional[str],
        *,
        max_retries: Optional[int] = None,
        timeout: Optional[float] = None,
        total_timeout: Optional[float] = None,
        headers: Optional[Mapping[str, str]] = None,
        http_client: Optional[_Http] = None,
    ) -> None:
        if not isinstance(api_key, str) or not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise ValueError("api_key must be an API key of the organization (wfk_…): is its setting missing?")
        if not isinstance(base_url, str) or not _is_address(base_url):
            message = "base_url must be an address such as https://api.example.com, without user or query"
            raise ValueError(f"{message}: is its setting missing?")
        self._api_key = api_key
        self._root = base_url.rstrip().rstrip("/")
        self._options = CallOptions(max_retries, timeout, total_timeout, headers=headers or {})
        _limits_of(self._options)
        self._http: _Http = http_client or self._http_type()

    def _organization_call(self, options: CallOptions) -> Call[Organization]:
        return self._call("/v1/organization", _has_id, options)

    def _page_call(
        self, search: Optional[str], limit: Optional[int], cursor: Optional[str], options: CallOptions
    ) -> Call[Page]:
        given = {"search": search, "limit": limit, "cursor": cursor}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        return self._call(f"/v1/workflows{query and '?'}{query}", _is_page, options)

    def _workflow_call(self, workflow_id: str, options: CallOptions) -> Call[Workflow]:
        return self._call(_path("workflows", workflow_id), _has_id, options)

    def _start_call(
        self,
        workflow_id: str,
        context: str,
        session_id: Optional[str],
        idempotency_key: Optional[str],
        options: CallOptions,
    ) -> Call[StartConfirmation]:
        body = {"context": context} if session_id is None else {"context": context, "session_id": session_id}
        headers = {name.lower(): value for name, value in options.headers.items()}
        given = headers.get("idempotency-key", secrets.token_hex(16))
        key = given if idempotency_key is None else idempotency_key
        return self._call(f"{_path('workflows', workflow_id)}/start", _is_confirmation, options, body, key)

    def _run_call(self, run_id: str, options: CallOptions, query: str = "") -> Call[Run]:
        return self._call(_path("runs", run_id) + query, _is_run, options)

    def _session_call(self, session_id: str, options: CallOptions) -> Call[Session]:
        return self._call(_path("sessions", session_id), _is_session, options)

    def _wait_calls(self, run_id: str, options: CallOptions) -> Iterator[tuple[float, Call[Run]]]:
        """The calls that wait for the end of a run until its time is over, and the seconds to pause before each."""
        _, timeout, total = _limits_of(self._options, options)
        within = dataclasses.replace(options, timeout=timeout + _WAIT_SECONDS)
        ends_at = time.monotonic() + total
        begins_at = 0.0
        while time.monotonic() < ends_at:
            call = self._run_call(run_id, within, f"?wait={_WAIT_SECONDS}")
            call.ends_at = ends_at
            # A gateway that stops, or has too many requests that wait, answers at once.
            pause = max(0.0, min(begins_at, ends_at) - time.monotonic())
            begins_at = time.monotonic() + pause + _MIN_WAIT
            yield pause, call
        raise ApiTimeoutError(f"The run had not ended in time ({total:g} s).", attempts=0, idempotency_key=None)

    def _call(
        self,
        path: str,
        is_expected: Callable[[Dict[str, Any]], bool],
        options: CallOptions,
        body: Optional[Dict[str, Any]] = None,
        key: Optional[str] = None,
    ) -> Call[Any]:
        headers = httpx.Headers({"accept": "application/json", "user-agent": _USER_AGENT})
        for given in (self._options.headers, options.headers):
            headers.update({name: _header(name, value) for name, value in given.items()})
        headers["authorization"] = f"Bearer {self._api_key}"
        if options.request_id is not None:
            headers["x-request-id"] = _header("request_id", options.request_id)
        if key is not None:
            headers["idempotency-key"] = _header("idempotency_key", key)
            headers["content-type"] = "application/json"
        return Call(
            method="GET" if body is None else "POST",
            url=f"{self._root}{path}",
            headers=headers,
            is_expected=is_expected,
            **_limits_of(self._options, options)._asdict(),
            content=None if body is None else _to_json(body),
            idempotency_key=key,
        )


class WorkflowClient(_Client[httpx.Client]):
    """
    A client of the public API. Every method raises `ApiError`, `ApiConnectionError` or `ApiTimeoutError`, and
    ValueError for arguments that cannot be sent. Threads may share it. Close it, or use it in a `with` block.

    `http_client` is used in place of its own, for a proxy, for `event_hooks` that see each attempt, or in tests.
    """

    _http_type = httpx.Client

    def get_organization(self, options: CallOptions = _NO_OPTIONS) -> Organization:
        """Reads the organization that the API key belongs to."""
        return self._run(self._organization_call(options))

    def list_workflows(
        self,
        search: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> Page:
        """Reads a page of the workflows, oldest first, active or not."""
        return self._run(self._page_call(search, limit, cursor, options))

    def iter_workflows(
        self, search: Optional[str] = None, limit: Optional[int] = None, options: CallOptions = _NO_OPTIONS
    ) -> Iterator[Workflow]:
        """Gives the workflows of all pages, and reads each page when it is needed."""
        cursor: Optional[str] = None
        while True:
            page = self.list_workflows(search, limit, cursor, options)
            yield from page["data"]
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return

    def get_workflow(self, workflow_id: str, options: CallOptions = _NO_OPTIONS) -> Workflow:
        return self._run(self._workflow_call(workflow_id, options))

    def start_workflow(
        self,
        workflow_id: str,
        context: str,
        session_id: Optional[str] = None,
        *,
        idempotency_key: Optional[str] = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> StartConfirmation:
        """
        Starts a workflow. Returns once the start is recorded; the workflow runs a moment later.

        For 24 hours, the same `idempotency_key` with the same start gives the same confirmation and starts nothing
        again. Without one, the call has the `Idempotency-Key` of its `options.headers`, or a random key, the same for
        each of its attempts.
        """
        return self._run(self._start_call(workflow_id, context, session_id, idempotency_key, options))

    def get_run(self, run_id: str, options: CallOptions = _NO_OPTIONS) -> Run:
        """Reads a run, by the `id` of its start."""
        return self._run(self._run_call(run_id, options))

    def wait_for_run(self, run_id: str, options: CallOptions = _NO_OPTIONS) -> Run:
        """Returns when the run has ended, with any status. Raises ApiTimeoutError after `total_timeout`."""
        calls = self._wait_calls(run_id, options)
        while True:
            pause, call = next(calls)
            time.sleep(pause)
            run = self._run(call)
            if run["finished_at"]:
                return run

    def get_session(self, session_id: str, options: CallOptions = _NO_OPTIONS) -> Session:
        """Reads a session with its latest runs."""
        return self._run(self._session_call(session_id, options))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> WorkflowClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: Call[_Value]) -> _Value:
        while True:
            try:
                with self._http.stream(**call.begin()) as answer:
                    for part in answer.iter_bytes():
                        call.read(part)
                return call.end(answer)
            except (ApiError, httpx.HTTPError) as failure:
                delay = call.delay_after(failure)
            time.sleep(delay)


class AsyncWorkflowClient(_Client[httpx.AsyncClient]):
    """The same as `WorkflowClient`, for asyncio and trio. Use it in an `async with` block, or close it."""

    _http_type = httpx.AsyncClient

    async def get_organization(self, options: CallOptions = _NO_OPTIONS) -> Organization:
        """Reads the organization that the API key belongs to."""
        return await self._run(self._organization_call(options))

    async def list_workflows(
        self,
        search: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> Page:
        """Reads a page of the workflows, oldest first, active or not."""
        return await self._run(self._page_call(search, limit, cursor, options))

    async def iter_workflows(
        self, search: Optional[str] = None, limit: Optional[int] = None, options: CallOptions = _NO_OPTIONS
    ) -> AsyncIterator[Workflow]:
        """Gives the workflows of all pages, and reads each page when it is needed."""
        cursor: Optional[str] = None
        while True:
            page = await self.list_workflows(search, limit, cursor, options)
            for workflow in page["data"]:
                yield workflow
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return

    async def get_workflow(self, workflow_id: str, options: CallOptions = _NO_OPTIONS) -> Workflow:
        return await self._run(self._workflow_call(workflow_id, options))

    async def start_workflow(
        self,
        workflow_id: str,
        context: str,
        session_id: Optional[str] = None,
        *,
        idempotency_key: Optional[str] = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> StartConfirmation:
        """Starts a workflow: see `WorkflowClient.start_workflow`."""
        return await self._run(self._start_call(workflow_id, context, session_id, idempotency_key, options))

    async def get_run(self, run_id: str, options: CallOptions = _NO_OPTIONS) -> Run:
        """Reads a run, by the `id` of its start."""
        return await self._run(self._run_call(run_id, options))

    async def wait_for_run(self, run_id: str, options: CallOptions = _NO_OPTIONS) -> Run:
        """Returns when the run has ended, with any status. Raises ApiTimeoutError after `total_timeout`."""
        calls = self._wait_calls(run_id, options)
        while True:
            pause, call = next(calls)
            await anyio.sleep(pause)
            run = await self._run(call)
            if run["finished_at"]:
                return run

    async def get_session(self, session_id: str, options: CallOptions = _NO_OPTIONS) -> Session:
        """Reads a session with its latest runs."""
        return await self._run(self._session_call(session_id, options))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncWorkflowClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, call: Call[_Value]) -> _Value:
        while True:
            try:
                async with self._http.stream(**call.begin()) as answer:
                    async for part in answer.aiter_bytes():
                        call.read(part)
                return call.end(answer)
            except (ApiError, httpx.HTTPError) as failure:
                delay = call.delay_after(failure)
            await anyio.sleep(delay)


def _limits_of(*given: CallOptions) -> _Limits:
    """Returns the last given value of each limit."""
    limits = _Limits()
    for each in given:
        chosen = {name: getattr(each, name) for name in _Limits._fields}
        limits = limits._replace(**{name: value for name, value in chosen.items() if value is not None})
    if not isinstance(limits.max_retries, int) or limits.max_retries < 0:
        raise ValueError("max_retries must be a whole number from 0")
    if not (limits.timeout > 0 and limits.total_timeout > 0):
        raise ValueError("timeout and total_timeout must be above 0")
    return limits


def _is_address(text: str) -> bool:
    try:
        return _ADDRESS.fullmatch(text) is not None and bool(httpx.URL(text.rstrip()).host)
    except httpx.InvalidURL:
        return False


def _to_json(body: Dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except TypeError as error:
        raise ValueError(str(error)) from error


def _header(name: str, value: str) -> str:
    """Returns what HTTP can carry, and raises before anything is sent."""
    if not isinstance(value, str) or not re.fullmatch(r"[\x20-\x7e\t]*", value):
        raise ValueError(f"{name} must be a text of printable ASCII characters")
    return value


def _path(kind: str, given: str) -> str:
    # `.` and `..` would change the path.
    if not isinstance(given, str) or not given.strip("."):
        raise ValueError(f"id must be a {kind[:-1]}'s id")
    return f"/v1/{kind}/{quote(given, safe='')}"


# The fields of a success that callers rely on: a proxy's page or another API must not pass for a recorded start.
def _has_id(body: Dict[str, Any]) -> bool:
    return is_text(body, "id")


def _is_confirmation(body: Dict[str, Any]) -> bool:
    return all(is_text(body, name) for name in ("id", "workflow_id", "session_id"))


def _is_run(body: Dict[str, Any]) -> bool:
    has_end = is_text(body, "finished_at") or ("finished_at" in body and body["finished_at"] is None)
    return has_end and all(is_text(body, name) for name in ("id", "status"))


def _is_session(body: Dict[str, Any]) -> bool:
    return _has_id(body) and isinstance(body.get("runs"), list)


def _is_page(body: Dict[str, Any]) -> bool:
    data, pagination = body.get("data"), body.get("pagination")
    if not isinstance(data, list) or not all(is_text(each, "id") for each in data) or not isinstance(pagination, dict):
        return False
    return is_text(pagination, "next_cursor") or ("next_cursor" in pagination and pagination["next_cursor"] is None)
