"""Answers the questions of the tests: reads lines of JSON, and prints what the check says of each."""

import json
import sys

from workflow_service import webhook


def now(at):
    return lambda: at


for line in sys.stdin:
    question = json.loads(line)
    kind = question.pop("kind")
    if kind == "token":
        check = webhook.check_service_token(question["header"], question["secret"], now=now(question["now"]))
        answer = [check.ok, check.reason, check.timestamp]
    elif kind == "signature":
        at = now(question["now"])
        check = webhook.check_service_signature(question["headers"], question["body"], question["secret"], now=at)
        answer = [check.ok, check.reason, check.delivery_id]
    elif kind == "headers":
        made = {"delivery_id": question["id"], "body": question["body"], "now": now(question["now"])}
        answer = webhook.create_service_headers(question["secret"], **made)
    elif kind == "event":
        event = webhook.parse_event(question["body"])
        answer = event and event["type"]
    else:
        parsed = webhook.parse_webhook(question["body"], question["example"])
        answer = [parsed.kind, [[each.field, each.code, each.message] for each in parsed.problems]]
    print(json.dumps(answer), flush=True)
