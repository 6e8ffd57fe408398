import { expect, test } from '@jest/globals'
import { untilResponse } from './mcp-client.ts'

const HEADERS = { 'content-type': 'text/event-stream' }

test.each(['\n\n', '\r\n\r\n'])('a stream ends at the response, however it is divided into chunks: %j', (end) => {
  const other = `data: {"id":2,"result":{}}${end}: comment${end}`
  const stream = `${other}event: message${end.slice(0, end.length / 2)}data: {"id":1,"result":{}}${end}`
  for (const size of [1, 2, 3, 5, 1_000]) {
    const isComplete = untilResponse(1)
    const found: number[] = []
    for (let at = 0; at < stream.length; at += size)
      if (isComplete(Buffer.from(stream.slice(at, at + size)), HEADERS)) found.push(Math.min(at + size, stream.length))
    expect(found).toEqual([stream.length])
  }
})
