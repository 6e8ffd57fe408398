import { createServer, type IncomingMessage, request, type RequestOptions, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { close, listen } from './loopback-server.ts'

/** What the proxy does in place of a response. `lose`, `cut` and `replace` come after the target has answered. */
const FAILURES = ['refuse', 'status', 'lose', 'cut', 'replace', 'hang'] as const
type Failure = (typeof FAILURES)[number]

/** A proxy before an API that fails. */
export type FailingProxy = Awaited<ReturnType<typeof startFailingProxy>>

/**
 * Starts a proxy that passes requests on to the target, and fails in 31 of 100 cases: it hangs at each hundredth
 * request, and fails otherwise at random.
 * @param always The failure of every request instead.
 */
export async function startFailingProxy(target: string, always?: Failure) {
  const failures = new Map<Failure, number>()
  let requests = 0
  const server = createServer((incoming, response) => {
    requests += 1
    // Hanging takes a whole time-out, so it is rare: at random, it would come in no request of 300 calls now and then.
    const random = requests % 100 === 0 ? 'hang' : FAILURES.slice(0, 5)[Math.floor(Math.random() * 16.5)]
    const failure = always ?? random
    if (failure) failures.set(failure, (failures.get(failure) ?? 0) + 1)
    respondOrFail(incoming, response, target, failure)
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    /** How often it has failed, and in which ways it has not yet. */
    get failures() {
      const count = [...failures.values()].reduce((sum, each) => sum + each, 0)
      return { count, unseen: FAILURES.filter((failure) => !failures.has(failure)) }
    },
    close: () => close(server),
    [Symbol.asyncDispose]: () => close(server),
  }
}

function respondOrFail(
  incoming: IncomingMessage,
  response: ServerResponse,
  target: string,
  failure: Failure | undefined,
): void {
  const fail = (status: number): void => {
    const body = { error: { code: 'service_unavailable', message: 'Try again.', request_id: 'r' } }
    response.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': '0' }).end(JSON.stringify(body))
  }
  if (failure === 'refuse') return void incoming.socket.destroy()
  if (failure === 'status') return fail([429, 500, 503][Math.floor(Math.random() * 3)]!)
  if (failure === 'hang') return
  const options: RequestOptions = { method: incoming.method, headers: incoming.headers, agent: false }
  const passOn = async (received: IncomingMessage): Promise<unknown> => {
    const body = await buffer(received)
    if (failure === 'lose') return incoming.socket.destroy()
    if (failure === 'replace') return fail(503)
    response.writeHead(received.statusCode ?? 0, { ...received.headers, 'content-length': body.length })
    if (failure !== 'cut') return response.end(body)
    return response.write(body.subarray(0, body.length / 2), () => incoming.socket.destroy())
  }
  const passed = request(`${target}${incoming.url}`, options, (received) => void passOn(received))
  passed.on('error', () => incoming.socket.destroy())
  incoming.pipe(passed)
}

const ERROR = { code: 'validation_error', message: 'No.', request_id: 'r' }

/** Errors that are not of the API: a client must call them `unexpected_answer`, and not ask again. */
export const ODD_ERRORS: readonly unknown[] = [
  { ...ERROR, message: 7 },
  { ...ERROR, message: undefined },
  { ...ERROR, details: 'all' },
  { ...ERROR, details: '' },
  { ...ERROR, details: [null] },
  { ...ERROR, details: [{ field: 'context' }] },
  { ...ERROR, request_id: {} },
  { ...ERROR, code: null },
  'no',
  null,
]

const OTHER_BODIES = ['', '<html>', 'null', '[1]', '7', '{}', '{"hello":1}', '{"id":1}', '{"data":[1],"pagination":{}}']

/**
 * Statuses and bodies that are no success of an operation with this status and this documented body, and no error of
 * the API either.
 */
export function unexpectedResponses(success: number, body: string): [status: number, body: string][] {
  const others = success === 202 ? [200, 201, 204] : [201, 202, 206]
  return [
    ...OTHER_BODIES.map((text): [number, string] => [success, text]),
    ...others.map((status): [number, string] => [status, status === 204 ? '' : body]),
    [302, body],
    [302, JSON.stringify({ error: ERROR })],
  ]
}
