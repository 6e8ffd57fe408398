import { expect, test } from '@jest/globals'
import type { SendLookup } from './lookup-answer.ts'
import { listMcpTools, untilResponse } from './mcp-client.ts'

const HEADERS = { 'content-type': 'text/event-stream' }

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
    const bytes = Buffer.from(event.repeat(2_002))
    expect(untilResponse(1)(bytes, HEADERS)).toBe(true)
    const read = { bytes, isCutOff: false, headers: HEADERS }
    const answered = { kind: 'answered', status: 200, body: read } as Awaited<ReturnType<SendLookup>>
    const listed = listMcpTools(() => Promise.resolve(answered), 'http://127.0.0.1/mcp')
    await expect(listed).rejects.toThrow('The first 1000 events of the answer have no response.')
  },
)

test.each(['\n', '\r\n', '\r'])('a stream with a byte-order mark is read, with the line end %j', async (end) => {
  const send: SendLookup = ({ body }) => {
    const { id, method } = JSON.parse(body ?? '{}') as { id?: number; method?: string }
    const begun = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    const result = method === 'initialize' ? begun : { tools: [{ name: 'ö', inputSchema: { type: 'object' } }] }
    const text = JSON.stringify({ jsonrpc: '2.0', id, result }, null, 1).replaceAll('\n', `${end}data: `)
    const bytes = Buffer.from(`\u{FEFF}data: ${text}${end}${end}: more`)
    const read = { bytes, isCutOff: false, headers: HEADERS }
    return Promise.resolve({ kind: 'answered', status: id === undefined ? 202 : 200, body: read } as Awaited<
      ReturnType<SendLookup>
    >)
  }
  expect(await listMcpTools(send, 'http://127.0.0.1/mcp')).toMatchObject([{ name: 'ö' }])
})

test.each([3, 5])('a connection makes at most %i requests, which is the limit here, and says so', async (limit) => {
  let requests = 0
  const send: SendLookup = ({ method, body }) => {
    requests += 1
    const { id, method: called } = JSON.parse(body ?? '{}') as { id?: number; method?: string }
    const begun = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    // Each page names a further one.
    const result = called === 'initialize' ? begun : { tools: [], nextCursor: String(requests) }
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result }))
    const read = { bytes, isCutOff: false, headers: { 'content-type': 'application/json' } }
    const status = method !== 'POST' || id === undefined ? 202 : 200
    return Promise.resolve({ kind: 'answered', status, body: read } as Awaited<ReturnType<SendLookup>>)
  }
  await expect(listMcpTools(send, 'http://127.0.0.1/mcp', limit)).rejects.toThrow(
    `The server needs more than ${limit} requests.`,
  )
  expect(requests).toBe(limit)
})
