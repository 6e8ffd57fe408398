import { describe, expect, test } from '@jest/globals'
import { readTraceContext, toTraceHeaders } from './trace-context.ts'

const IDS = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'
const VALID = `00-${IDS}-01`

const stateOf = (tracestate: unknown) =>
  readTraceContext({ traceparent: VALID, tracestate: tracestate as string })?.tracestate

describe('readTraceContext', () => {
  test.each([
    ['a sampled trace', VALID, VALID],
    ['a trace that is not sampled', `00-${IDS}-00`, `00-${IDS}-00`],
    ['reserved flags, which are cleared', `00-${IDS}-ff`, `00-${IDS}-03`],
    ['a later version', `cc-${IDS}-01`, VALID],
    ['a later version with more fields', `cc-${IDS}-01-what-comes-next`, VALID],
  ])('reads %s', (_what, traceparent, read) => {
    expect(readTraceContext({ traceparent })).toEqual({ traceparent: read, tracestate: null })
  })

  test.each([
    ['absent', undefined],
    ['upper case', VALID.toUpperCase()],
    ['a later version that goes on without a hyphen', `cc-${IDS}-01.more`],
    ['version 00 with another hyphen', `${VALID}-`],
    ['version 00 with more fields', `${VALID}-more`],
    ['version ff', `ff-${IDS}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['a parent id of zeros', `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${IDS.slice(1)}-01`],
    ['given twice', `${VALID}, ${VALID}`],
    ['given twice as a list', [VALID, VALID]],
  ])('ignores a traceparent that is %s, and its tracestate', (_what, traceparent) => {
    expect(readTraceContext({ traceparent, tracestate: 'a=1' })).toBeNull()
  })

  test('passes on a tracestate of up to 512 printable characters, and drops another one', () => {
    for (const kept of ['rojo=00f067aa0ba902b7', 'x'.repeat(512)]) expect(stateOf(kept)).toBe(kept)
    expect(stateOf(['a=1', 'b=2'])).toBe('a=1,b=2')
    for (const dropped of ['', 'x'.repeat(513), 'a=\u0001', 'a=ä', 5]) expect(stateOf(dropped)).toBeNull()
  })
})

test('the headers that continue a trace are read as the same context', () => {
  const trace = { traceparent: VALID, tracestate: 'a=1' }
  expect(readTraceContext(toTraceHeaders(trace))).toEqual(trace)
  expect(toTraceHeaders({ ...trace, tracestate: null })).toEqual({ traceparent: VALID })
  expect(toTraceHeaders(null)).toEqual({})
})
