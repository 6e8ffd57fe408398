"""
Creates and checks the headers by which the Workflow Automation Service signs its requests to your endpoint, and reads
their bodies. Standard library only.

The same as the npm package `@workflow-service/webhook-token`, which describes the headers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._payload import PayloadProblem, Webhook, parse_event, parse_webhook
from ._types import RunEvent

__all__ = [
    "DELIVERY_ATTEMPT_HEADER",
    "DELIVERY_ID_HEADER",
    "SERVICE_SIGNATURE_HEADER",
    "SERVICE_TIMESTAMP_HEADER",
    "SERVICE_TOKEN_HEADER",
    "Check",
    "DeliveryMemory",
    "PayloadProblem",
    "RunEvent",
    "Webhook",
    "check_service_signature",
    "check_service_token",
    "create_service_headers",
    "parse_event",
    "parse_webhook",
]

SERVICE_TOKEN_HEADER = "X-Service-Token"
SERVICE_SIGNATURE_HEADER = "X-Service-Signature"
SERVICE_TIMESTAMP_HEADER = "X-Service-Timestamp"
DELIVERY_ID_HEADER = "X-Delivery-Id"
DELIVERY_ATTEMPT_HEADER = "X-Delivery-Attempt"

#: A signing secret. While you change it, a list: any secret of it is accepted.
Secrets = Union[str, Sequence[str], None]
Clock = Callable[[], float]

# A token with a timestamp of 15 digits has 108 characters. A longer value is rejected before decoding.
_MAX_TOKEN_LENGTH = 128
_TOKEN = re.compile(rb"([0-9]{1,15})\.([0-9a-f]{64})")
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_TIMESTAMP = re.compile(r"[0-9]{1,15}")
_SIGNATURES = re.compile(r"(?:v[0-9]{1,2},[0-9A-Za-z+/]{4,256}={0,2} ?){1,4}")


@dataclass(frozen=True)
class Check:
    """
    What a check found. `reason` is None if the request is authentic, else `missing`, `repeated`, `malformed`,
    `too_old`, `too_new` or `wrong_signature`.
    """

    ok: bool
    reason: Optional[str] = None
    #: When the request was created, in Unix seconds.
    timestamp: int = 0
    #: The id of the delivery, of `check_service_signature` only: the same when a person sends a payload again.
    delivery_id: str = ""


def check_service_token(
    header: Union[str, Sequence[str], None],
    secret: Secrets,
    *,
    now: Clock = time.time,
    tolerance_seconds: float = 300,
) -> Check:
    """
    Checks a value of `X-Service-Token`, which covers the time only. Never raises because of the value; raises
    TypeError if a secret is missing or empty, or the tolerance is no number from 0.
    """
    secrets = _read_secrets(secret)
    values = [header] if header is None or isinstance(header, str) else list(header)
    if len(values) > 1:
        return Check(False, "repeated")
    value = values[0] if values else None
    if value is None or value == "":
        return Check(False, "missing")
    token = _TOKEN.fullmatch(_decode_base64(value) or b"") if len(value) <= _MAX_TOKEN_LENGTH else None
    if token is None:
        return Check(False, "malformed")
    timestamp, signature = token.group(1), bytes.fromhex(token.group(2).decode())
    untimely = _check_time(timestamp.decode(), now, tolerance_seconds)
    if untimely:
        return Check(False, untimely)
    if not _is_signed([signature], secrets, timestamp):
        return Check(False, "wrong_signature")
    return Check(True, timestamp=int(timestamp))


def create_service_headers(
    secret: Optional[str],
    *,
    delivery_id: str,
    body: Union[str, bytes],
    attempt: int = 1,
    now: Clock = time.time,
) -> Dict[str, str]:
    """
    Creates all headers by which the service identifies and signs a request, to test your endpoint. Raises TypeError if
    the secret is missing or empty.
    """
    secret = _read_secrets(secret)[0]
    timestamp = str(int(now()))
    token = f"{timestamp}.{_hmac(secret, timestamp.encode()).hex()}".encode()
    signature = _hmac(secret, f"{delivery_id}.{timestamp}.".encode() + _to_bytes(body))
    return {
        DELIVERY_ID_HEADER: delivery_id,
        DELIVERY_ATTEMPT_HEADER: str(attempt),
        SERVICE_TIMESTAMP_HEADER: timestamp,
        SERVICE_TOKEN_HEADER: base64.b64encode(token).decode(),
        SERVICE_SIGNATURE_HEADER: f"v1,{base64.b64encode(signature).decode()}",
    }


def check_service_signature(
    headers: Mapping[str, Any],
    body: Union[str, bytes],
    secret: Secrets,
    *,
    now: Clock = time.time,
    tolerance_seconds: float = 300,
) -> Check:
    """
    Checks the signature of a request over `<delivery id>.<time>.<body>` (Standard Webhooks 1.0.0), and gives the
    delivery id. Give it the body as received, before it is parsed, and the headers of your framework, whose names it
    compares without case. Never raises because of the request; raises TypeError if a secret is missing or empty, if
    the tolerance is no number from 0, or if the body is parsed already.
    """
    secrets = _read_secrets(secret)
    values = [
        _read_header(headers, name) for name in (DELIVERY_ID_HEADER, SERVICE_TIMESTAMP_HEADER, SERVICE_SIGNATURE_HEADER)
    ]
    if any(len(each) > 1 for each in values):
        return Check(False, "repeated")
    if not all(each and each[0] for each in values):
        return Check(False, "missing")
    delivery_id, timestamp, signatures = (each[0] for each in values)
    if not (_ID.fullmatch(delivery_id) and _TIMESTAMP.fullmatch(timestamp) and _SIGNATURES.fullmatch(signatures)):
        return Check(False, "malformed")
    untimely = _check_time(timestamp, now, tolerance_seconds)
    if untimely:
        return Check(False, untimely)
    received = [_decode_base64(each[3:]) for each in signatures.split(" ") if each.startswith("v1,")]
    if not _is_signed(received, secrets, f"{delivery_id}.{timestamp}.".encode() + _to_bytes(body)):
        return Check(False, "wrong_signature")
    return Check(True, timestamp=int(timestamp), delivery_id=delivery_id)


class DeliveryMemory:
    """
    The delivery ids that this process has received, the latest `max_ids` of them. For one process that may forget
    them when it ends; the README has the same for PostgreSQL and Redis.
    """

    def __init__(self, max_ids: int = 10_000) -> None:
        self._seen: Dict[str, None] = {}
        self._max_ids = max_ids
        self._lock = threading.Lock()

    def already_seen(self, delivery_id: str) -> bool:
        """Whether the id was given before. Remembers it: of two requests at the same time, one gets False."""
        with self._lock:
            if delivery_id in self._seen:
                return True
            self._seen[delivery_id] = None
            if len(self._seen) > self._max_ids:
                del self._seen[next(iter(self._seen))]
            return False

    def forget(self, delivery_id: str) -> None:
        """Forgets the id of a payload that could not be processed, so that it can be sent again."""
        with self._lock:
            self._seen.pop(delivery_id, None)


def _read_secrets(secret: Secrets) -> List[str]:
    secrets: List[Any] = [secret] if secret is None or isinstance(secret, str) else list(secret)
    if not secrets:
        raise TypeError("the list of signing secrets is empty: is its setting missing?")
    for each in secrets:
        if not isinstance(each, str) or each == "":
            found = "empty" if each == "" else "None" if each is None else f"of the type {type(each).__name__}"
            raise TypeError(f"the signing secret must be a non-empty string, and is {found}: is its setting missing?")
    return secrets


def _check_time(timestamp: str, now: Clock, tolerance_seconds: float) -> Optional[str]:
    # No age is above NaN.
    if not tolerance_seconds >= 0:
        raise TypeError("tolerance_seconds must be a number from 0: is its setting missing?")
    age = int(now()) - int(timestamp)
    if age > tolerance_seconds:
        return "too_old"
    return "too_new" if age < -tolerance_seconds else None


def _is_signed(signatures: Sequence[Optional[bytes]], secrets: Sequence[str], content: bytes) -> bool:
    # Compares with every secret, so that the time taken does not disclose which one matched.
    expected = [_hmac(secret, content) for secret in secrets]
    return any([hmac.compare_digest(each, right) for each in signatures if each is not None for right in expected])


def _hmac(secret: str, content: bytes) -> bytes:
    return hmac.new(secret.encode("utf-8", "replace"), content, hashlib.sha256).digest()


def _to_bytes(body: Union[str, bytes]) -> bytes:
    if not isinstance(body, (str, bytes, bytearray, memoryview)):
        raise TypeError("the body must be the text or bytes as received, before it is parsed")
    return body.encode("utf-8", "replace") if isinstance(body, str) else bytes(body)


def _decode_base64(text: str) -> Optional[bytes]:
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    # The decoder takes set bits after the last byte.
    return decoded if base64.b64encode(decoded).decode() == text else None


def _read_header(headers: Mapping[str, Any], name: str) -> Tuple[str, ...]:
    wanted = name.lower()
    found = [value for key, value in headers.items() if key.lower() == wanted]
    return tuple(each for value in found for each in ([value] if isinstance(value, str) else value or []))
