"""
One call: its attempts, delays and errors, without input or output. The clients send what `attempts_of` yields, so
that both follow the same rules.
"""

from __future__ import annotations

import email.utils
import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generator, Generic, List, Mapping, Optional, TypeVar, Union, cast

import httpx

from ._errors import ApiConnectionError, ApiError, ApiTimeoutError

# The service's own transient answers, and those of a proxy that does not reach it. 409 is final.
_RETRIED_STATUSES = (429, 500, 502, 503, 504)
_FIRST_DELAY = 0.5
_MAX_DELAY = 8.0
# Far more than a page of workflows has.
_MAX_ANSWER_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class CallOptions:
    """Settings of a call. What is None is that of the client."""

    #: Attempts after the first one. Default 2; 0 switches retries off.
    max_retries: Optional[int] = None
    #: Seconds to connect, and until the next part of the answer. Default 15.
    timeout: Optional[float] = None
    #: Seconds for the call in all, delays between attempts included. Default 90.
    total_timeout: Optional[float] = None
    #: Sent as `X-Request-Id` with each attempt. None: the service makes one.
    request_id: Optional[str] = None
    #: Sent in addition.
    headers: Mapping[str, str] = field(default_factory=dict)


_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Call(Generic[_Value]):
    method: str
    url: str
    headers: httpx.Headers
    #: Whether an answer with the status of a success has the body of one.
    is_expected: Callable[[Dict[str, Any]], bool]
    max_retries: int
    timeout: float
    total_timeout: float
    content: Optional[bytes] = None
    idempotency_key: Optional[str] = None


@dataclass(frozen=True)
class Attempt:
    """To be sent. `timeout` is in seconds; no part of the answer is read after `ends_at` of `time.monotonic`."""

    timeout: float
    ends_at: float


@dataclass(frozen=True)
class Received:
    status: int
    headers: httpx.Headers
    body: bytes


#: What a client is to do: send the request, or wait so many seconds.
Step = Union[Attempt, float]
#: What it found: an answer, or the error of an attempt, or nothing after it has waited.
Found = Union[Received, httpx.HTTPError, None]


def attempts_of(call: Call[_Value]) -> Generator[Step, Found, _Value]:
    """
    Sends the request, and again after a connection error, a time-out or a transient answer, with growing, random
    delays of at least `Retry-After`. Gives up after `max_retries`, or if the next delay would not fit into
    `total_timeout`. Raises the last attempt's error.
    """
    ends_at = time.monotonic() + call.total_timeout
    attempt = 0
    while True:
        attempt += 1
        timeout = max(0.001, min(call.timeout, ends_at - time.monotonic()))
        found = yield Attempt(timeout, ends_at)
        value: Any = None
        error: Union[ApiError, ApiConnectionError, None]
        if isinstance(found, Received):
            value, error = _read(call, found, attempt)
        else:
            error = _connection_error(call, found, attempt, timeout)
        if error is None:
            return cast(_Value, value)
        if isinstance(error, ApiError) and error.status not in _RETRIED_STATUSES:
            raise error
        delay = _delay_before(attempt, error.retry_after if isinstance(error, ApiError) else None)
        if attempt > call.max_retries or time.monotonic() + delay >= ends_at:
            raise error
        yield delay


def read_chunks(received: List[bytes], chunk: bytes, ends_at: float) -> None:
    """Keeps a part of an answer. Raises if the call's time is over, or if the answer is too large to be one."""
    received.append(chunk)
    if time.monotonic() > ends_at:
        raise httpx.ReadTimeout("the answer was not complete in time")
    if sum(map(len, received)) > _MAX_ANSWER_BYTES:
        raise httpx.HTTPError("the answer is too large")


def _connection_error(
    call: Call[Any], found: Optional[httpx.HTTPError], attempt: int, timeout: float
) -> ApiConnectionError:
    facts: Dict[str, Any] = {"attempts": attempt, "idempotency_key": call.idempotency_key}
    error: ApiConnectionError
    if isinstance(found, httpx.TimeoutException):
        limit = f"timeout, {timeout:g}" if timeout == call.timeout else f"total_timeout, {call.total_timeout:g}"
        error = ApiTimeoutError(f"{call.method} {call.url} was not answered in time ({limit} s).", **facts)
    else:
        error = ApiConnectionError(f"{call.method} {call.url} failed: {found!r}", **facts)
    error.__cause__ = found
    return error


def _read(call: Call[Any], found: Received, attempt: int) -> "tuple[Any, Optional[ApiError]]":
    """Anything but the documented success and error of the operation is `unexpected_answer`."""
    value = _parse_object(found.body)
    if found.status == (202 if call.method == "POST" else 200) and call.is_expected(value):
        return value, None
    facts: Dict[str, Any] = {
        "attempts": attempt,
        "idempotency_key": call.idempotency_key,
        "status": found.status,
        "request_id": found.headers.get("x-request-id"),
        "retry_after": _read_retry_after(found.headers.get("retry-after")),
    }
    error: Any = value.get("error")
    if found.status < 400 or not _is_error(error):
        message = f"{call.method} {call.url} was answered by something else than this API: is base_url right?"
        return None, ApiError(message, code="unexpected_answer", **facts)
    facts["request_id"] = error.get("request_id") or facts["request_id"]
    return None, ApiError(error["message"], code=error["code"], details=error.get("details") or (), **facts)


def _is_error(error: Any) -> bool:
    if not isinstance(error, dict):
        return False
    details = error.get("details")
    texts = (error.get("code"), error.get("message"), "" if error.get("request_id") is None else error["request_id"])
    return all(isinstance(each, str) for each in texts) and (
        details is None
        or isinstance(details, list)
        and all(is_text(each, "field") and is_text(each, "message") for each in details)
    )


def is_text(value: Any, name: str) -> bool:
    """Whether a value is an object with a text of this name."""
    return isinstance(value, dict) and isinstance(value.get(name), str)


def _parse_object(body: bytes) -> Dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_retry_after(header: Optional[str]) -> Optional[float]:
    """Reads `Retry-After` (RFC 9110, section 10.2.3): seconds or a date."""
    if header is None:
        return None
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", header):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _delay_before(retry: int, retry_after: Optional[float]) -> float:
    """Half of the backoff is random, so that clients which failed together do not come back together."""
    backoff = min(_MAX_DELAY, _FIRST_DELAY * 2 ** (retry - 1))
    return float((backoff / 2 if retry_after is None else retry_after) + random.random() * backoff / 2)
