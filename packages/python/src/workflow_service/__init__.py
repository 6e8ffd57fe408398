"""Client of the Workflow Automation Service's public API. `workflow_service.webhook` checks its webhooks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import ApiConnectionError, ApiError, ApiTimeoutError, WorkflowServiceError
from ._types import (
    AutoRun,
    Delivery,
    FieldError,
    File,
    Organization,
    Page,
    PageInfo,
    Run,
    RunError,
    Session,
    SessionRun,
    StartConfirmation,
    SubagentSource,
    Trigger,
    TriggerEvent,
    TriggerSource,
    User,
    Workflow,
)

if TYPE_CHECKING:
    from ._client import AsyncWorkflowClient, WorkflowClient
    from ._request import CallOptions

__version__ = "1.0.0"

_WITH_HTTPX = {"AsyncWorkflowClient": "_client", "CallOptions": "_request", "WorkflowClient": "_client"}


def __getattr__(name: str) -> Any:
    """Loads the client when it is used: the check of webhooks needs the standard library only."""
    if name not in _WITH_HTTPX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WITH_HTTPX[name]}", __name__), name)


__all__ = [
    "ApiConnectionError",
    "ApiError",
    "ApiTimeoutError",
    "AsyncWorkflowClient",
    "AutoRun",
    "CallOptions",
    "Delivery",
    "FieldError",
    "File",
    "Organization",
    "Page",
    "PageInfo",
    "Run",
    "RunError",
    "Session",
    "SessionRun",
    "StartConfirmation",
    "SubagentSource",
    "Trigger",
    "TriggerEvent",
    "TriggerSource",
    "User",
    "Workflow",
    "WorkflowClient",
    "WorkflowServiceError",
]
