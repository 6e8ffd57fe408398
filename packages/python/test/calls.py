"""
Makes calls for the tests. Reads lines of JSON: `kind`, `client` (options), `calls` (a list of [method, arguments,
keyword arguments]) and `at_once`. Prints a line of JSON for each as soon as it has ended: the results, in the order of
the calls.
"""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from threading import Thread

from workflow_service import AsyncWorkflowClient, CallOptions, WorkflowClient, WorkflowServiceError


def describe(error):
    names = ("attempts", "idempotency_key", "status", "code", "details", "request_id", "retry_after")
    facts = {name: getattr(error, name) for name in names if hasattr(error, name)}
    return {"error": type(error).__name__, "message": str(error), **facts}


async def result_of(client, method, arguments, keywords):
    """The result of a method of either client."""
    result = getattr(client, method)(*arguments, **keywords)
    if hasattr(result, "__aiter__"):
        return [each async for each in result]
    if hasattr(result, "__next__"):
        return list(result)
    return await result if isawaitable(result) else result


async def call(client, method, arguments, keywords):
    if method == "start_once":
        for _ in range(20):
            try:
                return {"value": await result_of(client, "start_workflow", arguments, keywords)}
            except WorkflowServiceError as error:
                keywords = {"idempotency_key": error.idempotency_key}
    if "options" in keywords:
        keywords["options"] = CallOptions(**keywords["options"])
    try:
        return {"value": await result_of(client, method, arguments, keywords)}
    except (WorkflowServiceError, ValueError) as error:
        return describe(error)


def run_sync(task, options):
    with WorkflowClient(**options) as client, ThreadPoolExecutor(task["at_once"]) as pool:
        return list(pool.map(lambda each: asyncio.run(call(client, *each)), task["calls"]))


async def run_async(task, options):
    places = asyncio.Semaphore(task["at_once"])

    async def one(each):
        async with places:
            return await call(client, *each)

    async with AsyncWorkflowClient(**options) as client:
        return await asyncio.gather(*(one(each) for each in task["calls"]))


def answer(line):
    task = json.loads(line)
    options = task["client"]
    results = run_sync(task, options) if task["kind"] == "sync" else asyncio.run(run_async(task, options))
    print(json.dumps(results), flush=True)


for line in sys.stdin:
    Thread(target=answer, args=(line,)).start()
