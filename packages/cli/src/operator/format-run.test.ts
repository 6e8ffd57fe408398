import type { RunDetails } from '@workflow-service/database'
import { describe, expect, test } from '@jest/globals'
import { formatRun } from './format-run.ts'

const at = (ms: number) => new Date(Date.UTC(2026, 0, 31, 9, 0, 0, ms))
const id = (digit: number) => `01890a5d-ac96-774b-bcce-${String(digit).repeat(12)}`
const delivery = { id: id(7), source_id: id(8), source_name: 'Order intake' }

type Step = RunDetails['steps'][number]
/** The position is not shown. */
const step = <Kind extends Step['kind']>(ms: number, kind: Kind, data: Extract<Step, { kind: Kind }>['data']) =>
  ({ position: 0, createdAt: at(ms), kind, data }) as Step

const run: RunDetails = {
  approvals: [],
  waits_for_source: true,
  id: id(1),
  workflow_id: id(2),
  session_id: id(3),
  organization_id: id(4),
  status: 'failed',
  attempts: 2,
  error: 'delivery_rejected: Order intake did not accept the payload',
  created_at: at(0),
  started_at: at(20),
  finished_at: at(1_500),
  workflow_name: 'Forward orders',
  number: 3,
  origin: 'api',
  context: 'order_id: A-1\u001b[2J\ntotal: 3',
  input_message: 'New:',
  request_id: 'request-1',
  steps: [
    step(30, 'message', { agent: 'openai-compatible:m', text: 'New:\norder' }),
    step(500, 'model_answer', {
      turn: 1,
      model: 'm',
      finish_reason: 'tool-calls',
      input_tokens: 120,
      output_tokens: null,
      parts: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'I send it.' },
        { type: 'tool_call', call_id: 'c1', tool: 'order_intake', source_id: id(8), arguments: {}, fault: null },
        { type: 'tool_call', call_id: 'c2', tool: 'nothing', source_id: null, arguments: {}, fault: 'no such tool' },
      ],
    }),
    step(510, 'tool_call', {
      call_id: 'c1',
      tool: 'order_intake',
      delivery: { ...delivery, payload: { order_id: 'A-1' } },
    }),
    step(900, 'tool_result', {
      call_id: 'c1',
      tool: 'order_intake',
      ok: false,
      text: 'Not accepted.',
      delivery: { ...delivery, outcome: 'rejected', status: 422, answer: null, reason: 'The endpoint answered 422.' },
    }),
    step(950, 'tool_call', { call_id: 'c3', tool: 'read_file', arguments: { path: 'a.md' } }),
    step(960, 'tool_result', { call_id: 'c3', tool: 'read_file', ok: true, text: '# A' }),
    step(970, 'note', { code: 'history_shortened', text: '2 turns left out' }),
  ],
  deliveries: [
    {
      ...delivery,
      outcome: 'rejected',
      status: 422,
      reason: 'The endpoint answered 422.',
      duration_ms: 380,
      answer_headers: null,
      answer: null,
      created_at: at(515),
      finished_at: at(895),
    },
  ],
}

const terminal = { write: () => {}, writeError: () => {}, isColoured: false, columns: undefined }
const formatted = formatRun(terminal, run)

const tagged = (text: string) => `<data-0123456789abcdef of="context">\n${text}\n</data-0123456789abcdef>`

describe('formatRun', () => {
  test('begins with the status, the workflow, the session and the origin', () => {
    expect(formatted.split('\n').slice(0, 6)).toEqual([
      `Run ${id(1)} failed after 1.5 s, attempt 2`,
      `  workflow      Forward orders  ${id(2)}`,
      `  session       ${id(3)}, start number 3`,
      '  started by    the public API',
      '  request       request-1',
      `  organization  ${id(4)}`,
    ])
  })

  test('begins with what a parked run waits for, until the run continues', () => {
    const text = 'The API of openai:m limits requests. The run waits.'
    const note = step(980, 'note', { code: 'run_parked', text })
    const parked = { ...run, status: 'queued' as const, finished_at: null, steps: [...run.steps, note] }
    expect(formatRun(terminal, parked)).toContain(`  waits         ${text}\n\n`)
    for (const code of ['source_paused', 'budget_spent']) {
      const steps = [...run.steps, step(980, 'note', { code, text })]
      expect(formatRun(terminal, { ...parked, steps })).toContain(`  waits         ${text}\n\n`)
      // It was woken and waits for the same as before, as for a budget every 10 minutes.
      steps.push(step(990, 'note', { code: 'taken_up_again', text: 'Resumed (attempt 1), after 9 steps' }))
      expect(formatRun(terminal, { ...parked, steps })).toContain(`  waits         ${text}\n\n`)
    }
    // The source was resumed, and no runner has come yet.
    const resumed = [...run.steps, step(980, 'note', { code: 'source_paused', text })]
    expect(formatRun(terminal, { ...parked, steps: resumed, waits_for_source: false })).not.toContain('  waits ')
    expect(formatRun(terminal, { ...parked, status: 'running' })).not.toContain('  waits ')
    expect(formatRun(terminal, { ...parked, steps: run.steps })).not.toContain('  waits ')
  })

  test('shows each event with its time and the time since the start was accepted', () => {
    const headlines = formatted.split('\n').filter((line) => /^\d\d:\d\d:/.test(line))
    expect(headlines).toEqual([
      '09:00:00.000      +0 ms  start accepted on 2026-01-31, with this context',
      '09:00:00.020     +20 ms  a runner began the run',
      '09:00:00.030     +30 ms  message to the agent (openai-compatible:m)',
      '09:00:00.500    +500 ms  m answered, turn 1 (120 input tokens, ? output tokens)',
      '09:00:00.500    +500 ms  reasoning',
      '09:00:00.500    +500 ms  text',
      '09:00:00.500    +500 ms  invalid call of nothing',
      `09:00:00.510    +510 ms  sends to Order intake, delivery ${id(7)}`,
      '09:00:00.900    +900 ms  Order intake: rejected with status 422',
      '09:00:00.950    +950 ms  calls read_file',
      '09:00:00.960    +960 ms  read_file answered',
      '09:00:00.970    +970 ms  note (history_shortened)',
      '09:00:01.500     +1.5 s  failed',
    ])
  })

  test('shows texts and payloads below their event, without control characters', () => {
    expect(formatted).toContain('│ order_id: A-1 [2J\n')
    expect(formatted).toContain('│   "order_id": "A-1"\n')
    expect(formatted).not.toContain('\u001b')
  })

  test('shows texts from outside without the tags that mark them for a model', () => {
    const text = `A new order\n\n${tagged('B-7 <b>')}\n${tagged('<data-x>')}`
    const shown = formatRun(terminal, { ...run, steps: [step(30, 'message', { agent: 'm', text })] })
    expect(shown).toMatch(/│ A new order\n +│ B-7 <b>\n +│ <data-x>\n/)
    expect(shown).not.toContain('<data-0')
    const unmatched = step(30, 'message', { agent: 'm', text: 'a </data-0123456789abcdef> b' })
    expect(formatRun(terminal, { ...run, steps: [unmatched] })).toContain('a </data-0123456789abcdef> b')
  })

  test('ends with the deliveries', () => {
    expect(formatted).toMatch(
      /\nDeliveries\nSENT \(UTC\).*\n2026-01-31 09:00:00 {2}Order intake {2}rejected {2}422 .*The endpoint answered 422\.\n$/,
    )
  })
})

test('a payload that the model sends again is shown with the reason and the earlier delivery', () => {
  const send_again = { delivery_id: id(6), reason: 'Repeated orders are ignored.' }
  const data = { call_id: 'c9', tool: 'send_again', delivery: { ...delivery, payload: {}, send_again } }
  expect(formatRun(terminal, { ...run, steps: [step(30, 'tool_call', data)] })).toContain(
    `sends to Order intake, delivery ${id(7)}, again after ${id(6)}: Repeated orders are ignored.`,
  )
})
