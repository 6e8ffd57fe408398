import { expect, test } from '@jest/globals'
import type { NewJournalStep } from '@workflow-service/contract'
import { stepsOfRow, toStepRows } from './step-rows.ts'

const step = (kind: string, text: string) => ({ kind, data: JSON.stringify({ text }) })

test('a message and notes share the row of the step after them, and are read as they were written', () => {
  const steps = [
    step('message', 'a'),
    step('note', 'b'),
    step('tool_call', 'c'),
    step('tool_result', 'd'),
    step('note', 'e'),
  ]
  const rows = toStepRows(7, steps)
  expect(rows.map(({ position, kind }) => [position, kind])).toEqual([
    [9, 'tool_call'],
    [10, 'tool_result'],
    [11, 'note'],
  ])
  const read = rows.flatMap(({ earlierSteps, data, ...row }) =>
    stepsOfRow({
      ...row,
      data: JSON.parse(data),
      earlierSteps: JSON.parse(earlierSteps ?? 'null') as NewJournalStep[] | null,
    }),
  )
  expect(read).toEqual(steps.map(({ kind, data }, index) => ({ kind, data: JSON.parse(data), position: 7 + index })))
})
