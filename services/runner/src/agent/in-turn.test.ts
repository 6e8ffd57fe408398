import { expect, test } from '@jest/globals'
import { withTurns } from '../../test/support/count-turns.ts'
import { createInMemoryRun, webhookSource } from '../../test/support/in-memory-run.ts'
import { createBuiltinAgent } from './builtin/builtin-agent.ts'
import { inTurn } from './in-turn.ts'

/** Longer than the time that works of one turn share. */
const LONG_MS = 6

/** Does the work of all at once, and gives the largest number of works in one turn of the event loop. */
async function countPerTurn(start: (work: () => void) => readonly Promise<unknown>[]): Promise<number> {
  const turns: number[] = []
  await withTurns((turn) =>
    Promise.all(
      start(() => {
        turns.push(turn())
        const endsAt = performance.now() + LONG_MS
        while (performance.now() < endsAt);
      }),
    ),
  )
  return Math.max(...[...Map.groupBy(turns, (each) => each).values()].map(({ length }) => length))
}

/** Work comes before or after the turn is counted, so two works may have the same number. */
const ONE_OR_TWO = 2

test('long works that are ready at the same time have turns of their own', async () => {
  const most = await countPerTurn((work) => Array.from({ length: 10 }, () => inTurn(work)))
  expect(most).toBeLessThanOrEqual(ONE_OR_TWO)
})

test('the payloads of runs that begin at the same time are planned in turns', async () => {
  const most = await countPerTurn((work) =>
    Array.from({ length: 10 }, () => {
      const example = new Proxy(
        { text: 'x' },
        {
          ownKeys: (target) => {
            if (!isRead) work()
            isRead = true
            return Reflect.ownKeys(target)
          },
        },
      )
      let isRead = false
      const source = webhookSource('Endpoint', {})
      const run = createInMemoryRun({ description: 'Send it to Endpoint.', context: 'text: y', sources: [source] })
      // Its own reading, because that of a run looks at each example before the agent does.
      const readSources = async () => [{ ...source, exampleRequestBody: example }]
      return run.execute((agentRun) => createBuiltinAgent()({ ...agentRun, readSources }))
    }),
  )
  expect(most).toBeLessThanOrEqual(ONE_OR_TWO)
})
