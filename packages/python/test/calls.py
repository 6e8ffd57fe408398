"""
Makes calls for the tests. Reads a line of JSON: `kind`, `client` (options), `calls` (a list of [method, arguments,
keyword arguments]) and `at_once`. Prints a line of JSON with the results, in the order of the calls.
"""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from workflow_service import AsyncWorkflowClient, CallOptions, WorkflowClient, WorkflowServiceError

def with_options(keywords):
    options = keywords.pop("options", None)
    return {**keywords, "options": CallOptions(**options)} if options else keywords


def describe(error):
    names = ("attempts", "idempotency_key", "status", "code", "details", "request_id", "retry_after")
    facts = {name: getattr(error, name) for name in names if hasattr(error, name)}
    return {"error": type(error).__name__, "message": str(error), **facts}


def call(client, method, arguments, keywords):
    if method == "start_once":
        for _ in range(20):
            try:
                return {"value": client.start_workflow(*arguments, **keywords)}
            except WorkflowServiceError as error:
                keywords = {"idempotency_key": error.idempotency_key}
    try:
        if method == "iter_workflows":
            return {"value": list(client.iter_workflows(*arguments, **keywords))}
        return {"value": getattr(client, method)(*arguments, **with_options(keywords))}
    except (WorkflowServiceError, ValueError) as error:
        return describe(error)


async def acall(client, method, arguments, keywords):
    if method == "start_once":
        for _ in range(20):
            try:
                return {"value": await client.start_workflow(*arguments, **keywords)}
            except WorkflowServiceError as error:
                keywords = {"idempotency_key": error.idempotency_key}
    try:
        if method == "iter_workflows":
            return {"value": [each async for each in client.iter_workflows(*arguments, **keywords)]}
        return {"value": await getattr(client, method)(*arguments, **with_options(keywords))}
    except (WorkflowServiceError, ValueError) as error:
        return describe(error)


def run_sync(task, options):
    with WorkflowClient(**options) as client, ThreadPoolExecutor(task["at_once"]) as pool:
        return list(pool.map(lambda each: call(client, *each), task["calls"]))


async def run_async(task, options):
    places = asyncio.Semaphore(task["at_once"])

    async def one(each):
        async with places:
            return await acall(client, *each)

    async with AsyncWorkflowClient(**options) as client:
        return await asyncio.gather(*(one(each) for each in task["calls"]))


for line in sys.stdin:
    task = json.loads(line)
    options = task["client"]
    results = run_sync(task, options) if task["kind"] == "sync" else asyncio.run(run_async(task, options))
    print(json.dumps(results), flush=True)
