import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { describePublicApi } from '@workflow-service/contract'
import {
  freePort,
  type RecordedRequest,
  startCustomerEndpoint,
  startRawEndpoint,
  waitUntil,
} from '@workflow-service/testkit'
import { ODD_ERRORS, startFailingProxy, unexpectedResponses } from '@workflow-service/testkit/start-failing-proxy'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import {
  checkServiceSignature,
  checkServiceToken,
  createServiceHeaders,
  createServiceToken,
  parseEvent,
  parseWebhook,
} from '@workflow-service/webhook-token'
import * as fc from 'fast-check'
import { startableWorkflow, useTestGateway } from '../../../services/gateway/test/support/test-gateway.ts'

const folder = join(import.meta.dirname, '..')
const root = join(folder, '../..')
const target = useTestFolder()

const runs = (python: string, ...args: string[]): boolean => spawnSync(python, args).status === 0
const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin']
const pythons = [...new Set(folders)].map((each) => join(each, 'python3')).filter((each) => runs(each, '--version'))
const python = pythons.find((each) => runs(each, '-c', 'import httpx')) ?? pythons[0] ?? ''
const hasHttpx = runs(python, '-c', 'import httpx')
const hasMypy = runs(python, '-m', 'mypy', '--version')

const env = { ...process.env, PYTHONPATH: target, PYTHONDONTWRITEBYTECODE: '1' }
const readme = readFileSync(join(folder, 'README.md'), 'utf8')
const examples = [...readme.matchAll(/```python\n([^]*?)```/g)].map(([, code = '']) => code)

/** Starts a program of this folder, which prints a line of JSON for each line of JSON that it reads. */
function startProgram(name: string) {
  const child = spawn(python, [join(import.meta.dirname, name)], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const ask = async (question: object): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify(question)}\n`)
    return JSON.parse((await lines.next()).value ?? 'null')
  }
  return { ask, end: (): void => void child.stdin.end() }
}

/** The value with a character more, less or another one. */
const changed = (value: string) =>
  fc
    .tuple(fc.nat(value.length), fc.nat(1), fc.constantFrom('', '\n', ' ', '=', '-', 'A', '0', '.', 'ä'))
    .map(([index, cut, more]) => value.slice(0, index) + more + value.slice(index + cut))

if (!python)
  test('Python is not installed here: nothing of the Python package was run', () => expect(pythons).toEqual([]))
else
  beforeAll(() => {
    const build = 'import sys; import build_backend as b; print(b.build_wheel(sys.argv[1]))'
    const wheel = execFileSync(python, ['-c', build, target], { cwd: folder, env, encoding: 'utf8' }).trim()
    execFileSync(python, ['-m', 'zipfile', '--extract', join(target, wheel), target])
  })

if (python)
  describe(`the wheel, with ${python}`, () => {
    test('has the types of the API', () => {
      interface Schema {
        readonly properties?: Readonly<Record<string, Schema>>
      }
      const { schemas } = describePublicApi()['components'] as { schemas: Record<string, Schema> }
      const code = 'import json, workflow_service._types as t; from typing import TypedDict, get_type_hints as h'
      const names = 'print(json.dumps({n: list(h(c)) for n, c in vars(t).items() if hasattr(c, "__total__")}))'
      const printed = execFileSync(python, ['-c', `${code}\n${names}`], { env, encoding: 'utf8' })
      const schemaNames: Record<string, string> = {
        Page: 'WorkflowPage',
        StartConfirmation: 'WorkflowStartOut',
        SessionRun: 'PublicSessionRun',
        Run: 'PublicRunOut',
        Delivery: 'PublicDeliveryOut',
        Session: 'PublicSessionOut',
      }
      const types = Object.entries(JSON.parse(printed) as Record<string, string[]>)
      expect(types.length).toBeGreaterThan(15)
      for (const [name, fields] of types) {
        const named = schemas[schemaNames[name] ?? name] ?? schemas[`${name}Out`]
        const schema = name === 'RunError' ? schemas['PublicSessionRun']?.properties?.['error'] : named
        expect([name, fields.toSorted()]).toEqual([name, Object.keys(schema?.properties ?? {}).toSorted()])
      }
    })

    test('has the names that it lists, and those that it needs itself', () => {
      const code = 'import workflow_service as w; names = {n for n in dir(w) if n[0] != "_"} - {*w.__all__}'
      const printed = execFileSync(python, ['-c', `${code}\nprint(*sorted(names))`], { env, encoding: 'utf8' })
      expect(printed).toBe('Any TYPE_CHECKING import_module\n')
    })

    test('checks tokens and signatures, and reads bodies, as the npm package does', async () => {
      const secretText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      const timestamp = 1_750_000_000
      const now = () => timestamp * 1000
      const questions: object[] = []
      const expected: unknown[] = []
      for (const secret of fc.sample(secretText, { seed: 1, numRuns: 25 })) {
        const body = JSON.stringify({ secret })
        const token = await createServiceToken(secret, { now })
        const deliveryId = randomUUID()
        const headers = await createServiceHeaders(secret, { deliveryId, body }, { now })
        expected.push(headers)
        questions.push({ kind: 'headers', secret, id: deliveryId, body, now: timestamp })
        for (const header of [token, ...fc.sample(changed(token), { seed: 1, numRuns: 8 })]) {
          for (const at of [timestamp, timestamp + 301, timestamp - 301]) {
            const check = await checkServiceToken(header, [secret, 'other'], { now: () => at * 1000 })
            expected.push(check.ok ? [true, null, check.timestamp] : [false, check.reason, 0])
            questions.push({ kind: 'token', header, secret: [secret, 'other'], now: at })
          }
        }
        const { 'X-Service-Signature': signature = '' } = headers
        const others = fc.sample(changed(signature), { seed: 2, numRuns: 8 })
        for (const value of [signature, `v1,AAAA ${signature}`, ...others]) {
          for (const received of [body, `${body} `]) {
            const sent = { ...headers, 'X-Service-Signature': value }
            const check = await checkServiceSignature(new Map(Object.entries(sent)), received, secret, { now })
            expected.push(check.ok ? [true, null, check.deliveryId] : [false, check.reason, ''])
            questions.push({ kind: 'signature', headers: sent, body: received, secret, now: timestamp })
          }
        }
      }
      // Names that are no whole numbers: JavaScript lists those first.
      const json = fc.letrec((tie) => ({
        value: fc.oneof(
          { maxDepth: 5 },
          fc.constantFrom(null, true, false, 0, 1.5, -1e300, '', 'a', 'ä\ud83d\ude00'),
          fc.array(tie('value'), { maxLength: 3 }),
          tie('object'),
        ),
        object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'type', '__proto__x'), tie('value'), { maxKeys: 4 }),
      }))
      const pairs = fc.tuple(
        json.object,
        fc.oneof(
          json.value.map((value) => JSON.stringify(value)),
          fc.constantFrom('', '{', 'NaN', '[1,]', '1'.repeat(5000), '['.repeat(20_000), '\ufeff{}'),
          fc.constant(JSON.stringify({ type: 'service.webhook.verification' })),
        ),
      )
      for (const [example, body] of fc.sample(pairs, { seed: 1, numRuns: 300 })) {
        for (const sent of [body, JSON.stringify(example)]) {
          const read = parseWebhook(sent, example)
          const problems =
            read.kind === 'invalid' ? read.problems.map(({ field, code, message }) => [field, code, message]) : []
          expected.push([read.kind, problems])
          questions.push({ kind: 'body', example, body: sent })
        }
      }
      const data = { run_id: randomUUID() }
      const known = ['run.failed', 'run.cancelled', 'approval.waiting'].map((type) => JSON.stringify({ type, data }))
      for (const body of [...known, '{"type": "run.failed"}', '{"type": "notice.test", "data": {}}', '[]', '{']) {
        expected.push(parseEvent(body)?.type ?? null)
        questions.push({ kind: 'event', body })
      }
      const { ask, end } = startProgram('checks.py')
      const answers = await Promise.all(questions.map(ask))
      end()
      const wrong = questions.map((question, index) => ({ question, is: answers[index], expected: expected[index] }))
      expect(answers).toHaveLength(expected.length)
      expect(wrong.filter((each) => JSON.stringify(each.is) !== JSON.stringify(each.expected))).toEqual([])
    })

    test.each([
      ['{}', 300, 'the body must be the text or bytes as received'],
      ['"{}"', 'float("nan")', 'tolerance_seconds must be a number'],
    ])('does not take the body %s with the tolerance %s', (body, tolerance, message) => {
      const made = 'made = w.create_service_headers("s", delivery_id="1", body="{}")'
      const check = `w.check_service_signature(made, ${body}, "s", tolerance_seconds=${tolerance})`
      const args = ['-c', `import workflow_service.webhook as w; ${made}; ${check}`]
      expect(spawnSync(python, args, { env, encoding: 'utf8' }).stderr).toContain(`TypeError: ${message}`)
    })

    test('has errors that come from another process as they were', () => {
      const facts = 'attempts=2, idempotency_key="k", status=422, code="c", details=[{"field": "a", "message": "b"}]'
      const code = `import pickle; from workflow_service import ApiError, ApiTimeoutError
for error in ApiError("No.", ${facts}), ApiTimeoutError("Late.", attempts=3, idempotency_key=None):
    copied = pickle.loads(pickle.dumps(error))
    print(type(copied) is type(error), str(copied) == str(error), vars(copied) == vars(error), copied.attempts)`
      const { stdout, stderr } = spawnSync(python, ['-c', code], { env, encoding: 'utf8' })
      expect(stdout + stderr).toBe('True True True 2\nTrue True True 3\n')
    })

    test('has an endpoint in its README that tells a payload sent again from a new one', async () => {
      const file = join(target, 'endpoint.py')
      writeFileSync(file, examples.find((code) => code.includes('parse_webhook')) ?? '')
      const port = String(await freePort())
      const server = spawn(python, [file], { env: { ...env, PORT: port, SIGNING_SECRET: 'a secret' }, stdio: 'ignore' })
      try {
        const post = async (value: object, deliveryId: string = randomUUID(), secret = 'a secret') => {
          const body = JSON.stringify(value)
          const headers = await createServiceHeaders(secret, { deliveryId, body })
          const answer = await fetch(`http://127.0.0.1:${port}/webhook`, { method: 'POST', body, headers })
          return [answer.status, await answer.text()]
        }
        await waitUntil(() => fetch(`http://127.0.0.1:${port}/`, { method: 'POST' }).then(Boolean, () => false))
        const payload = { order_id: 'A-1', customer: 'Ada', total: 3, express: true }
        const id = randomUUID()
        expect(await post({ type: 'service.webhook.verification' })).toEqual([204, ''])
        expect(await post(payload, id)).toEqual([200, 'thank you'])
        expect(await post(payload, id)).toEqual([200, 'received before'])
        expect(await post(payload)).toEqual([200, 'thank you'])
        expect((await post({ ...payload, total: '3' }))[0]).toBe(422)
        expect(await post(payload, id, 'another secret')).toEqual([401, 'wrong_signature'])
      } finally {
        server.kill()
      }
    })

    if (hasMypy)
      test('passes mypy, as strict as it gets, with the examples of its README', () => {
        const files = examples.map((code, index) => {
          writeFileSync(join(target, `example_${index}.py`), code)
          return join(target, `example_${index}.py`)
        })
        const cache = join(root, 'node_modules/.cache/mypy')
        const config = [`--config-file=${join(folder, 'pyproject.toml')}`, `--cache-dir=${cache}`]
        const args = ['-m', 'mypy', '--strict', ...config, join(target, 'workflow_service'), ...files]
        expect(spawnSync(python, args, { cwd: target, env, encoding: 'utf8' }).stdout).toMatch(/^Success/)
      })
    else test('mypy is not installed here: the types were not checked', () => expect(hasMypy).toBe(false))
  })

if (python && !hasHttpx)
  test('httpx is not installed here: the Python client was not run', () => expect(hasHttpx).toBe(false))

interface Outcome {
  readonly value?: Record<string, unknown>
  readonly error?: string
  readonly [fact: string]: unknown
}
type PythonCall = [method: string, args: unknown[], keywords?: object]

if (hasHttpx)
  describe('the client', () => {
    const kinds = ['sync', 'async']
    const gateway = useTestGateway()
    const workflow = startableWorkflow()
    let program: ReturnType<typeof startProgram>
    let endedId = ''
    beforeAll(async () => {
      program = startProgram('calls.py')
      await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
      endedId = (await gateway.createEndedRun(workflow.id)).id
    })
    afterAll(() => program.end())

    const make = async (kind: string, calls: PythonCall[], client: object = {}, atOnce = 1) => {
      const options = { api_key: gateway.organization.key, base_url: gateway.url, ...client }
      const withKeywords = calls.map(([method, args, keywords = {}]) => [method, args, keywords])
      return (await program.ask({ kind, client: options, calls: withKeywords, at_once: atOnce })) as Outcome[]
    }

    test.each(kinds)('%s: makes the calls of the API, and gives its errors', async (kind) => {
      const unknown = randomUUID()
      const calls: PythonCall[] = [
        ['get_organization', []],
        ['list_workflows', ['forward', 1]],
        ['iter_workflows', []],
        ['get_workflow', [workflow.id]],
        ['start_workflow', [workflow.id, 'go'], { idempotency_key: kind, options: { request_id: kind } }],
        ['start_workflow', [workflow.id, 'go'], { idempotency_key: kind }],
        ['start_workflow', [workflow.id, 'go'], { options: { headers: { 'Idempotency-Key': kind } } }],
        ['get_run', [endedId]],
        ['wait_for_run', [endedId]],
        ['get_session', [unknown]],
        ['start_workflow', [workflow.id, ' ']],
        ['get_run', ['..']],
        ['get_run', [endedId], { options: { headers: { 'X-Team': 'a\nb' } } }],
      ]
      // As read from a file.
      const results = await make(kind, calls, { base_url: `${gateway.url}/\n` })
      const started = results[4]?.value
      expect(results).toMatchObject([
        { value: { id: gateway.organization.id } },
        { value: { data: [{ id: workflow.id }], pagination: { next_cursor: null } } },
        { value: [{ id: workflow.id }] },
        { value: { id: workflow.id } },
        { value: { workflow_id: workflow.id } },
        { value: started },
        { value: started },
        { value: { id: endedId, status: 'succeeded' } },
        { value: { id: endedId, status: 'succeeded', deliveries: [] } },
        { error: 'ApiError', status: 404, code: 'not_found', attempts: 1, idempotency_key: null },
        { error: 'ApiError', status: 422, details: [{ field: 'context', code: 'string_too_short' }] },
        { error: 'ValueError' },
        { error: 'ValueError' },
      ])
      expect(gateway.logLines.some((line) => line['request_id'] === kind)).toBe(true)
    })

    test.each(kinds)('%s: is not over before the run has ended, or its time is', async (kind) => {
      const { id } = (await gateway.start(workflow.id, { context: 'go' })).body
      // They end in this order.
      const timedOut = make(kind, [['wait_for_run', [id], { options: { timeout: 0.1, total_timeout: 0.3 } }]])
      const waiting = make(kind, [['wait_for_run', [id]]])
      const message = expect.stringContaining('total_timeout, 0.3 s')
      expect(await timedOut).toMatchObject([{ error: 'ApiTimeoutError', message }])
      await gateway.db.prisma.start.update({ where: { id }, data: { status: 'succeeded', finishedAt: new Date() } })
      expect(await waiting).toMatchObject([{ value: { id, status: 'succeeded' } }])
    })

    test.each(kinds)('%s: names the limit of the whole call for an answer that arrives in pieces', async (kind) => {
      const endpoint = await startRawEndpoint((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
        const timer = setInterval(() => socket.write(' '), 50)
        socket.once('close', () => clearInterval(timer))
      })
      const client = { base_url: endpoint.url, timeout: 1, total_timeout: 1.2 }
      const message = expect.stringContaining('total_timeout, 1.2 s')
      expect(await make(kind, [['get_organization', []]], client)).toMatchObject([
        { error: 'ApiTimeoutError', message },
      ])
      await endpoint.close()
    })

    test.each(kinds)('%s: takes limits that never end', async (kind) => {
      const call: PythonCall = ['get_run', [endedId], { options: { timeout: 1e300, total_timeout: 1e300 } }]
      const client = { base_url: gateway.url, timeout: 1e300, total_timeout: 1e300 }
      expect(await make(kind, [call], client)).toMatchObject([{ value: { id: endedId } }])
    })

    test.each(kinds)('%s: asks once a second for a run where a wait is answered at once', async (kind) => {
      const body = { id: 'a', status: 'queued', finished_at: null }
      await using endpoint = await startCustomerEndpoint({ answer: { body } })
      const call: PythonCall = ['wait_for_run', ['a'], { options: { total_timeout: 0.3 } }]
      await make(kind, [call], { base_url: endpoint.url })
      expect(endpoint.requests.length).toBeLessThan(4)
    })

    test.each(kinds)('%s: takes nothing but the documented answer for a success, and asks once', async (kind) => {
      const id = randomUUID()
      const documented = JSON.stringify({ id, workflow_id: id, session_id: id })
      const replies: [number, string][] = []
      const answer = (request: RecordedRequest) => {
        const [status, body] = replies[Number(request.headers['x-team'])]!
        return { status, body, headers: { 'Content-Type': 'application/json' } }
      }
      await using endpoint = await startCustomerEndpoint({ answer })
      const calls: PythonCall[] = []
      const add = (method: string, args: unknown[], answers: [number, string][]): void => {
        for (const reply of answers) {
          replies.push(reply)
          calls.push([method, args, { options: { headers: { 'X-Team': String(replies.length - 1) } } }])
        }
      }
      for (const method of ['get_organization', 'list_workflows']) add(method, [], unexpectedResponses(200, documented))
      for (const method of ['get_workflow', 'get_run', 'wait_for_run', 'get_session'])
        add(method, [id], unexpectedResponses(200, documented))
      add('start_workflow', [id, 'go'], unexpectedResponses(202, documented))
      const odd = ODD_ERRORS.map((error): [number, string] => [422, JSON.stringify({ error })])
      add('start_workflow', [id, 'go'], odd)
      const results = await make(kind, calls, { base_url: endpoint.url })
      const outcomes = results.map(({ code, attempts }, index) => [calls[index], replies[index], code, attempts])
      expect(outcomes).toEqual(calls.map((call, index) => [call, replies[index], 'unexpected_answer', 1]))
    })

    test.each(kinds)('%s: starts 100 workflows once each against a server that fails at random', async (kind) => {
      await using proxy = await startFailingProxy(gateway.url)
      const run = randomUUID()
      const contexts = Array.from({ length: 100 }, (_, index) => `${run} ${index}`)
      const calls = contexts.map((context): PythonCall => ['start_once', [workflow.id, context]])
      // With 50 at once, a busy machine answers few of them in time, and each attempt adds to the work.
      const results = await make(kind, calls, { base_url: proxy.url, timeout: 2 }, 20)
      expect(proxy.failures.count).toBeGreaterThan(15)
      const { rows } = await gateway.db.pool.query<{ id: string; context: string }>(
        'SELECT id, context FROM starts WHERE starts_with(context, $1)',
        [run],
      )
      expect(rows).toHaveLength(contexts.length)
      const ids = new Map(rows.map(({ id, context }) => [context, id]))
      expect(results.map(({ value }) => value?.['id'])).toEqual(contexts.map((context) => ids.get(context)))
    })

    test('refuses what cannot be sent as a ValueError', () => {
      const calls = [
        ['C("k", "https://u:secret@api.test")', 'base_url'],
        ['C("k", "https://api.test?a")', 'base_url'],
        ['C("k", "http://[::1")', 'base_url'],
        ['C("k", "https://api.test").start_workflow("w", b"go")', 'Object of type bytes'],
        ['C("k", "https://api.test").start_workflow("w", float("nan"))', 'Out of range float'],
      ] as const
      const tries = calls.map(([call]) => `try: ${call}\nexcept ValueError as error: print(error)`)
      const code = ['from workflow_service import WorkflowClient as C', ...tries].join('\n')
      const printed = execFileSync(python, ['-c', code], { env, encoding: 'utf8' })
      expect(printed.split('\n')).toEqual([...calls.map(([, message]) => expect.stringContaining(message)), ''])
    })

    test('runs the first example of its README', async () => {
      const file = join(target, 'first.py')
      writeFileSync(file, examples[0] ?? '')
      const settings = { WORKFLOW_API_KEY: gateway.organization.key, WORKFLOW_BASE_URL: gateway.url }
      const child = spawn(python, [file], { env: { ...env, ...settings }, stdio: ['ignore', 'pipe', 'inherit'] })
      expect(await text(child.stdout)).toMatch(/^Run [0-9a-f-]{36} in session [0-9a-f-]{36}\n$/)
    })
  })
