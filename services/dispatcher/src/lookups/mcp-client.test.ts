import { expect, test } from '@jest/globals'
import type { SendLookup } from './lookup-answer.ts'
import { listMcpTools, untilResponse } from './mcp-client.ts'

const HEADERS = { 'content-type': 'text/event-stream' }

function answerOf(status: number, text: string, type = HEADERS['content-type']): ReturnType<SendLookup> {
  const body = { bytes: Buffer.from(text), isCutOff: false, headers: { 'content-type': type } }
  return Promise.resolve({ kind: 'answered', status, location: null, text: null, body, durationMs: 1 })
}

/** The result of a request for the begin of a connection, or of one for the list of tools. */
function respondTo(body = '{}', list: object) {
  const { id, method } = JSON.parse(body) as { id?: number; method?: string }
  const begun = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
  return { id, result: method === 'initialize' ? begun : list }
}

test.each(['\n\n', '\r\n\r\n', '\r\r'])(
  'a stream ends at the response, however it is divided into chunks: %j',
  (end) => {
    const other = `data: {"id":2,"result":{}}${end}: comment${end}`
    const stream = `${other}event: message${end.slice(0, end.length / 2)}data: {"id":1,"result":{}}${end}`
    // A line ends with its CR.
    const completeAt = stream.lastIndexOf(end) + (end.startsWith('\r\n') ? 3 : 2)
    for (const size of [1, 2, 3, 5, 1_000]) {
      const isComplete = untilResponse(1)
      const found: number[] = []
      for (let at = 0; at < stream.length; at += size)
        if (isComplete(Buffer.from(stream.slice(at, at + size)), HEADERS))
          found.push(Math.min(at + size, stream.length))
      expect(found).toEqual([Math.min(Math.ceil(completeAt / size) * size, stream.length)])
    }
  },
)

test.each(['\n', ':\n\n', 'data:x\n\n'])(
  'a stream of many events without the response is read no further: %j',
  async (event) => {
    const events = event.repeat(2_002)
    expect(untilResponse(1)(Buffer.from(events), HEADERS)).toBe(true)
    const listed = listMcpTools(() => answerOf(200, events), 'http://127.0.0.1/mcp')
    await expect(listed).rejects.toThrow('The first 1000 events of the answer have no response.')
  },
)

test.each(['\n', '\r\n', '\r'])('a stream with a byte-order mark is read, with the line end %j', async (end) => {
  const send: SendLookup = ({ body }) => {
    const { id, result } = respondTo(body, { tools: [{ name: 'ö', inputSchema: { type: 'object' } }] })
    const text = JSON.stringify({ jsonrpc: '2.0', id, result }, null, 1).replaceAll('\n', `${end}data: `)
    return answerOf(id === undefined ? 202 : 200, `\u{FEFF}data: ${text}${end}${end}: more`)
  }
  expect(await listMcpTools(send, 'http://127.0.0.1/mcp')).toMatchObject([{ name: 'ö' }])
})

test.each([3, 5])('a connection makes at most %i requests, which is the limit here, and says so', async (limit) => {
  let requests = 0
  const send: SendLookup = ({ method, body }) => {
    requests += 1
    // Each page names a further one.
    const { id, result } = respondTo(body, { tools: [], nextCursor: String(requests) })
    const isAnswered = method === 'POST' && id !== undefined
    return answerOf(isAnswered ? 200 : 202, JSON.stringify({ jsonrpc: '2.0', id, result }), 'application/json')
  }
  await expect(listMcpTools(send, 'http://127.0.0.1/mcp', limit)).rejects.toThrow(
    `The server needs more than ${limit} requests.`,
  )
  expect(requests).toBe(limit)
})
