import { describe, expect, test } from '@jest/globals'
import { readTraceContext, toTraceHeaders } from './trace-context.ts'

const IDS = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'
const VALID = `00-${IDS}-01`

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
    ['empty', ''],
    ['upper case', VALID.toUpperCase()],
    ['more fields in version 00', `${VALID}-more`],
    ['a later version that goes on without a hyphen', `cc-${IDS}-01.more`],
    ['a later version with an empty field', `cc-${IDS}-01-`],
    ['version ff', `ff-${IDS}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['a parent id of zeros', `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${IDS.slice(1)}-01`],
    ['no hexadecimal digit', VALID.replace('a', 'g')],
    ['white space', ` ${VALID}`],
    ['given twice', `${VALID}, ${VALID}`],
    ['given twice as a list', [VALID, VALID]],
    ['very long', `cc-${IDS}-01-${'x'.repeat(1_000)}`],
  ])('ignores a traceparent that is %s, and its tracestate', (_what, traceparent) => {
    expect(readTraceContext({ traceparent, tracestate: 'a=1' })).toBeNull()
  })

  test.each([
    ['one member', 'rojo=00f067aa0ba902b7', 'rojo=00f067aa0ba902b7'],
    ['several, with white space and empty members', 'a=1 ,\tb@c= 2,, d/e=3', 'a=1,b@c= 2,d/e=3'],
    ['512 characters', `a=${'x'.repeat(254)},b=${'y'.repeat(253)}`, `a=${'x'.repeat(254)},b=${'y'.repeat(253)}`],
    ['more than 512 characters', `a=${'x'.repeat(254)},b=${'y'.repeat(254)}`, null],
    ['a key twice', 'a=1,a=2', null],
    ['33 members', Array.from({ length: 33 }, (_, n) => `k${n}=1`).join(','), null],
    ['no value', 'a', null],
    ['a key in upper case', 'A=1', null],
    ['a control character', 'a=\u0001', null],
    ['nothing', '', null],
  ])('reads a tracestate with %s', (_what, tracestate, read) => {
    expect(readTraceContext({ traceparent: VALID, tracestate })).toEqual({ traceparent: VALID, tracestate: read })
  })

  test('ignores a tracestate that is no text, as a value of JSON may be', () => {
    const context = { traceparent: VALID, tracestate: 5 } as unknown as Record<string, string>
    expect(readTraceContext(context)).toEqual({ traceparent: VALID, tracestate: null })
  })
})

test('the headers that continue a trace are read as the same context', () => {
  const trace = { traceparent: VALID, tracestate: 'a=1' }
  expect(readTraceContext(toTraceHeaders(trace))).toEqual(trace)
  expect(toTraceHeaders({ ...trace, tracestate: null })).toEqual({ traceparent: VALID })
  expect(toTraceHeaders(null)).toEqual({})
})
