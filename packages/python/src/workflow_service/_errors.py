from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Type

from ._types import FieldError


class WorkflowServiceError(Exception):
    """
    Base of all errors of a call. After a failed start, call again with the same `idempotency_key`: it starts at most
    once, also if the failed call did reach the service. The service remembers the key for 24 hours.
    """

    def __init__(self, message: str, *, attempts: int, idempotency_key: Optional[str]) -> None:
        super().__init__(message)
        #: Requests sent.
        self.attempts = attempts
        #: Of a start; None for reads.
        self.idempotency_key = idempotency_key

    def __reduce__(self) -> Tuple[Any, ...]:
        # To copy an error, such as to another process, Python would call its type with the message alone, which fails.
        return _restore, (type(self), *self.args), self.__dict__


def _restore(error_type: Type[WorkflowServiceError], *args: Any) -> WorkflowServiceError:
    return error_type.__new__(error_type, *args)


class ApiError(WorkflowServiceError):
    """The service answered with an error. Match on `code` or `status`, never on the message."""

    def __init__(
        self,
        message: str,
        *,
        attempts: int,
        idempotency_key: Optional[str],
        status: int,
        code: str,
        details: Sequence[FieldError] = (),
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        # The service's message names the first field.
        others = [f" {each['field']}: {each['message']}." for each in details[:3] if each["message"] not in message]
        request = f" (request {request_id})" if request_id else ""
        super().__init__(
            f"{status} {code}: {message}{''.join(others)}{request}", attempts=attempts, idempotency_key=idempotency_key
        )
        self.status = status
        #: A code of the API, or `unexpected_answer` for an answer that is not of this API.
        self.code = code
        #: The fields that failed validation.
        self.details = tuple(details)
        #: Identifies the request in the service's logs.
        self.request_id = request_id
        #: Seconds that the service asks to wait.
        self.retry_after = retry_after


class ApiConnectionError(WorkflowServiceError):
    """No complete answer arrived. A start may or may not be recorded: repeat it with the same `idempotency_key`."""


class ApiTimeoutError(ApiConnectionError):
    """No answer arrived in time: see `CallOptions`."""
