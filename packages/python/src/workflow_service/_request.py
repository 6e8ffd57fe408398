"""
One call: its attempts, delays and errors, without input or output, so that both clients follow the same rules.
"""

from __future__ import annotations

import email.utils
import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, Mapping, Optional, TypeVar, Union, cast

import httpx

from ._errors import ApiConnectionError, ApiError, ApiTimeoutError

# The service's own transient answers, and those of a proxy that does not reach it. 409 is final.
_RETRIED_STATUSES = (429, 500, 502, 503, 504)
_FIRST_DELAY = 0.5
_MAX_DELAY = 8.0
# In seconds: a socket refuses longer ones, such as infinity, with an OverflowError.
_MAX_SOCKET_TIMEOUT = 2_000_000.0
# Far more than a page of workflows has.
_MAX_ANSWER_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class CallOptions:
    """Settings of a call. What is None is that of the client."""

    #: Attempts after the first one. Default 2; 0 switches retries off.
    max_retries: Optional[int] = None
    #: Seconds to connect, and until the next part of the answer; `wait_for_run` adds 10. Default 15.
    timeout: Optional[float] = None
    #: Seconds for the call in all, delays between attempts included. Default 90.
    total_timeout: Optional[float] = None
    #: Sent as `X-Request-Id` with each attempt. None: the service makes one.
    request_id: Optional[str] = None
    #: Sent in addition.
    headers: Mapping[str, str] = field(default_factory=dict)


_Value = TypeVar("_Value")


@dataclass
class Call(Generic[_Value]):
    """
    One call. It is sent again after a connection error, a time-out or a transient answer, with growing, random delays
    of at least `Retry-After`; not after `max_retries`, or if the next delay would not fit into `total_timeout`.
    """

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
    #: Requests sent, what has arrived of the last one's answer, and the seconds that it has for each part.
    attempts: int = field(default=0, init=False)
    body: bytearray = field(default_factory=bytearray, init=False)
    attempt_timeout: float = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.ends_at = time.monotonic() + self.total_timeout

    def begin(self) -> Dict[str, Any]:
        """Begins the next attempt. Returns the arguments of httpx for its request."""
        self.attempts += 1
        self.body.clear()
        self.attempt_timeout = max(0.001, min(self.timeout, self.ends_at - time.monotonic(), _MAX_SOCKET_TIMEOUT))
        return {
            "method": self.method,
            "url": self.url,
            "headers": self.headers,
            "content": self.content,
            "timeout": httpx.Timeout(self.attempt_timeout),
            # A redirect is not of this API, and would show the key to another host.
            "follow_redirects": False,
        }

    def read(self, part: bytes) -> None:
        """Keeps a part of the answer. Raises if the call's time is over, or if the answer is too large to be one."""
        self.body += part
        if time.monotonic() > self.ends_at:
            raise httpx.ReadTimeout("the answer was not complete in time")
        if len(self.body) > _MAX_ANSWER_BYTES:
            raise httpx.HTTPError("the answer is too large")

    def end(self, answer: httpx.Response) -> _Value:
        """
        Returns the value of an answer that was read. Raises ApiError for another one, as `unexpected_answer` if it is
        not the operation's documented success or error.
        """
        value = _parse_object(self.body)
        if answer.status_code == (202 if self.method == "POST" else 200) and self.is_expected(value):
            return cast(_Value, value)
        facts: Dict[str, Any] = {
            **self._facts(),
            "status": answer.status_code,
            "request_id": answer.headers.get("x-request-id"),
            "retry_after": _read_retry_after(answer.headers.get("retry-after")),
        }
        error: Any = value.get("error")
        if answer.status_code < 400 or not _is_error(error):
            message = f"{self.method} {self.url} was answered by something else than this API: is base_url right?"
            raise ApiError(message, code="unexpected_answer", **facts)
        facts["request_id"] = error.get("request_id") or facts["request_id"]
        raise ApiError(error["message"], code=error["code"], details=error.get("details") or (), **facts)

    def delay_after(self, failure: Union[ApiError, httpx.HTTPError]) -> float:
        """Returns the seconds before the next attempt. Raises the error of the failure if there is none."""
        error = failure if isinstance(failure, ApiError) else self._connection_error(failure)
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        # Half of the backoff is random, so that clients which failed together do not come back together.
        backoff = min(_MAX_DELAY, _FIRST_DELAY * 2 ** (self.attempts - 1))
        delay = float((backoff / 2 if retry_after is None else retry_after) + random.random() * backoff / 2)
        is_final = isinstance(error, ApiError) and error.status not in _RETRIED_STATUSES
        if is_final or self.attempts > self.max_retries or time.monotonic() + delay >= self.ends_at:
            raise error
        return delay

    def _connection_error(self, cause: httpx.HTTPError) -> ApiConnectionError:
        error = ApiConnectionError(f"{self.method} {self.url} failed: {cause!r}", **self._facts())
        if isinstance(cause, httpx.TimeoutException):
            is_attempt = self.attempt_timeout == self.timeout and time.monotonic() < self.ends_at
            limit = f"timeout, {self.timeout:g}" if is_attempt else f"total_timeout, {self.total_timeout:g}"
            message = f"{self.method} {self.url} was not answered in time ({limit} s)."
            error = ApiTimeoutError(message, **self._facts())
        error.__cause__ = cause
        return error

    def _facts(self) -> Dict[str, Any]:
        return {"attempts": self.attempts, "idempotency_key": self.idempotency_key}


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


def _parse_object(body: bytearray) -> Dict[str, Any]:
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
