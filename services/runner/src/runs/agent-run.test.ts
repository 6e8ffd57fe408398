import { expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { NO_TRACING } from '@workflow-service/service-kit'
import { createInMemoryRun } from '../../test/support/in-memory-run.ts'
import { createAgentRun } from './agent-run.ts'
import { type DispatcherClient, readResponse } from './dispatcher-client.ts'
import { openJournal } from './journal.ts'

const accepted = { outcome: 'accepted', status: 204, answer: null, reason: null } as const

type Call = Parameters<DispatcherClient['deliver']>

/** A run with one planned payload, before a dispatcher that answers by this function. */
function planOne(deliver: (journalKinds: string[], ...call: Call) => unknown) {
  const memory = createInMemoryRun()
  const { lease, run, stored } = memory
  const journal = openJournal(stored)
  const kinds = (): string[] => memory.steps.map(({ kind }) => kind)
  const dispatcher = {
    deliver: async (...call: Call) => deliver(kinds(), ...call),
  } as DispatcherClient
  const agentRun = createAgentRun({ dispatcher, tracing: NO_TRACING, lease, run, stored, journal, steps: [] })
  const delivery = { id: newId(), source_id: newId(), source_name: 'Order intake', payload: { a: 1 } }
  const call = { call_id: 'one', tool: 'builtin', delivery }
  agentRun.plan([{ kind: 'tool_call', data: call }])
  return { agentRun, call, journal, kinds, lease }
}

test('sends the plan with the payload, and knows that the run has succeeded with its outcome', async () => {
  const bodies: unknown[] = []
  const { agentRun, call, journal, lease } = planOne((kinds, _lease, { body }) => {
    bodies.push([kinds, body.journal?.position, body.journal?.steps.length, body.journal?.last_of_run, lease.isEnding])
    return { ...accepted, journal: 'succeeded' }
  })
  expect(await agentRun.deliver(call, true)).toEqual({ ...accepted, journal: 'succeeded' })
  expect(bodies).toEqual([[[], 0, 1, 1, true]])
  expect([journal.isEnded, lease.isEnding, journal.nextPosition]).toEqual([true, true, 2])
})

test('writes the plan first for a dispatcher of 1.0.0, which refuses the journal', async () => {
  const { agentRun, call, journal, kinds, lease } = planOne((known, _lease, { body }) => {
    const error = { code: 'validation_error', details: [{ field: 'journal', code: 'extra_forbidden', message: '' }] }
    const refused = readResponse({ status: 422, body: { error } })
    if (body.journal) return refused
    expect(known).toEqual(['tool_call'])
    return accepted
  })
  expect(await agentRun.deliver(call, true)).toEqual(accepted)
  expect([kinds(), journal.isEnded, lease.isEnding]).toEqual([['tool_call'], false, false])
})

test('writes a plan first that is too large for a request', async () => {
  const { agentRun, call, kinds } = planOne((known, _lease, { body }) => {
    expect([known, body.journal?.position, body.journal?.steps]).toEqual([['tool_call', 'note'], 2, []])
    return { ...accepted, journal: 'written' }
  })
  agentRun.plan([{ kind: 'note', data: { code: 'any', text: 'x'.repeat(130 * 1024) } }])
  expect(await agentRun.deliver(call, false)).toMatchObject({ journal: 'written' })
  expect(kinds()).toEqual(['tool_call', 'note'])
})
