"""
Reads the body of a request from the service. The rules by which an example decides are those of the npm package
`@workflow-service/webhook-token`; a test compares both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Optional, Set, Tuple, cast

from ._types import RunEvent

_VERIFICATION_TYPE = "service.webhook.verification"
_EVENT_TYPES = ("run.failed", "run.cancelled", "approval.waiting")
_MAX_PROBLEMS = 20
_MAX_LISTED_NAMES = 20
# The service accepts no deeper example. What is deeper allows any value.
_MAX_DEPTH = 32


@dataclass(frozen=True)
class PayloadProblem:
    """One place at which a body does not follow the example."""

    #: Nested names and positions are joined with a dot, `lines.0.price`; `body` is the whole body.
    field: str
    #: `missing`, `extra_forbidden`, `dict_type`, `list_type`, `string_type`, `float_type`, `bool_type`, `value_type`
    #: or `invalid_json`.
    code: str
    message: str


@dataclass(frozen=True)
class Webhook:
    """
    What a request is. Answer 2xx to a `verification` without processing it, and 4xx to what is `invalid`.
    """

    kind: Literal["verification", "payload", "invalid"]
    #: The payload, or the verification request. Empty if the body is invalid. A verification has the signing secret in
    #: `data`: do not log it.
    body: Dict[str, Any] = field(default_factory=dict)
    #: At most 20.
    problems: List[PayloadProblem] = field(default_factory=list)


def parse_event(body: Any) -> Optional[RunEvent]:
    """
    Reads the body of a request to the webhook of an organization: an event of a run. Check the request first. Never
    raises. None: it is another notice, or of a type that this version does not know. Answer 2xx to it.
    """
    try:
        value = _read(body)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(value, dict) and value.get("type") in _EVENT_TYPES and isinstance(value.get("data"), dict)
    return cast(RunEvent, value) if is_event else None


def parse_webhook(body: Any, example: Dict[str, Any]) -> Webhook:
    """
    Reads the body of a request: its text, its bytes, or the parsed JSON. A payload is compared with the example
    request body of the webhook source. Check the request first. Never raises because of the body; raises TypeError if
    the example is not a dict.
    """
    if not isinstance(example, dict):
        raise TypeError("the example must be the JSON object of the webhook source")
    try:
        value = _read(body)
    except (ValueError, RecursionError):
        return Webhook("invalid", problems=[PayloadProblem("body", "invalid_json", "is not JSON")])
    if isinstance(value, dict) and value.get("type") == _VERIFICATION_TYPE:
        return Webhook("verification", value)
    shape = _Shape()
    _add_example(shape, example, 1)
    problems: List[PayloadProblem] = []
    _compare(shape, value, (), problems)
    return Webhook("invalid", problems=problems) if problems else Webhook("payload", value)


def _read(body: Any) -> Any:
    if isinstance(body, (bytes, bytearray, memoryview)):
        body = bytes(body).decode("utf-8-sig", "replace")
    if not isinstance(body, str):
        return body
    # Python's decoder takes NaN, and refuses whole numbers of more than 4,300 digits.
    return json.loads(body, parse_constant=_refuse, parse_int=lambda text: int(text) if len(text) < 400 else float(text))


def _refuse(name: str) -> None:
    raise ValueError(name)


class _Shape:
    """What an example says about a value: its types, the fields of objects and the items of lists."""

    def __init__(self) -> None:
        #: How many values of the example are here, and how many of them are objects.
        self.count = 0
        self.objects = 0
        self.types: Set[str] = set()
        self.fields: Dict[str, _Shape] = {}
        self.items: Optional[_Shape] = None

    def allows_anything(self) -> bool:
        return self.types <= {"null"}

    def describe(self) -> str:
        words = [words for each, (_, words) in _TYPES.items() if each in self.types]
        return "any value" if self.allows_anything() else " or ".join(words)


_TYPES = {
    "object": ("dict_type", "an object"),
    "array": ("list_type", "a list"),
    "string": ("string_type", "a string"),
    "number": ("float_type", "a number"),
    "boolean": ("bool_type", "true or false"),
    "null": ("value_type", "null"),
}


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, (list, tuple)) else "other"


def _add_example(shape: _Shape, value: Any, depth: int) -> None:
    """Adds a value of the example to the shape of its position. Items of one list share a position."""
    kind = _type_of(value)
    shape.count += 1
    if depth > _MAX_DEPTH and kind in ("object", "array"):
        return
    shape.types.add(kind)
    if kind == "array":
        shape.items = shape.items or _Shape()
        for item in value:
            _add_example(shape.items, item, depth + 1)
    elif kind == "object":
        shape.objects += 1
        for name, item in value.items():
            _add_example(shape.fields.setdefault(name, _Shape()), item, depth + 1)


def _compare(shape: _Shape, value: Any, path: Tuple[str, ...], problems: List[PayloadProblem]) -> None:
    if len(problems) >= _MAX_PROBLEMS or shape.allows_anything():
        return
    kind = _type_of(value)
    if kind not in shape.types:
        types = [each for each in shape.types if each != "null"]
        code = _TYPES[types[0]][0] if len(types) == 1 else "value_type"
        found = _TYPES[kind][1] if kind in _TYPES else "a value that JSON cannot represent"
        _add(problems, path, code, f"must be {shape.describe()}, not {found}")
    elif kind == "object":
        _compare_fields(shape, value, path, problems)
    elif kind == "array" and shape.items is not None:
        for index, item in enumerate(value):
            _compare(shape.items, item, (*path, str(index)), problems)


def _compare_fields(shape: _Shape, value: Dict[str, Any], path: Tuple[str, ...], problems: List[PayloadProblem]) -> None:
    if not shape.fields:
        return
    for name, item in value.items():
        if name in shape.fields:
            _compare(shape.fields[name], item, (*path, name), problems)
    for name, inner in shape.fields.items():
        if inner.count == shape.objects and name not in value:
            _add(problems, (*path, name), "missing", f"is required: {inner.describe()}")
    known = ", ".join(list(shape.fields)[:_MAX_LISTED_NAMES])
    for name in value:
        if name not in shape.fields:
            message = f"is not in the example; the fields here are {known}"
            _add(problems, (*path, name), "extra_forbidden", message)


def _add(problems: List[PayloadProblem], path: Tuple[str, ...], code: str, message: str) -> None:
    if len(problems) < _MAX_PROBLEMS:
        problems.append(PayloadProblem(".".join(path) or "body", code, message))
