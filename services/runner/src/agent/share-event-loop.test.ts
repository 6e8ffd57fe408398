import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { withTurns } from '../../test/support/count-turns.ts'
import { createInMemoryRun, webhookSource } from '../../test/support/in-memory-run.ts'
import type { AgentRun } from './agent.ts'
import { builtinAgent } from './builtin/builtin-agent.ts'
import { shareEventLoop } from './share-event-loop.ts'
import { readRules } from './rules/plan-by-rules.ts'

/** Longer than the time that works of one turn share. */
const LONG_MS = 6

function workLong(): void {
  const endsAt = performance.now() + LONG_MS
  while (performance.now() < endsAt);
}

/** Does the work of all at once, and gives the largest number of works in one turn of the event loop. */
async function countPerTurn(start: (work: () => void) => readonly Promise<unknown>[]): Promise<number> {
  const turns: number[] = []
  await withTurns((turn) =>
    Promise.all(
      start(() => {
        turns.push(turn())
        workLong()
      }),
    ),
  )
  return Math.max(...[...Map.groupBy(turns, (each) => each).values()].map(({ length }) => length))
}

/** Work comes before or after the turn is counted, so two works may have the same number. */
const ONE_OR_TWO = 2

test('long works that are ready at the same time have turns of their own', async () => {
  const most = await countPerTurn((work) => Array.from({ length: 10 }, () => shareEventLoop('organization', work)))
  expect(most).toBeLessThanOrEqual(ONE_OR_TWO)
})

test('an organization with many works delays the small works of a run of another by a turn', async () => {
  await withTurns(async (turn) => {
    const many = Array.from({ length: 30 }, () => shareEventLoop('many', workLong))
    for (let round = 0; round < 3; round += 1) {
      await nextTurn()
      const askedIn = turn()
      for (let work = 0; work < 3; work += 1) await shareEventLoop('few', () => {})
      expect(turn() - askedIn).toBeLessThanOrEqual(ONE_OR_TWO)
    }
    await Promise.all(many)
  })
})

test('the rules of an organization are parsed before those of many runs of another', async () => {
  const parsed: string[] = []
  const parse = async (organizationId: string, n: number): Promise<void> => {
    const text = `deliveries: [${`{ to: Desk, when: 'text(${n}) == "1"' },`.repeat(50)}]`
    const workflow = { rulesFileId: 'rules' }
    await readRules({ organizationId, workflow, readFile: async () => text } as unknown as AgentRun)
    parsed.push(organizationId)
  }
  await Promise.all([...Array.from({ length: 10 }, (_, n) => parse('many', n)), parse('few', 10)])
  expect(parsed.indexOf('few')).toBeLessThan(2)
})

/** A text that does the work when its method is called for the first time. */
function textWith(method: 'trim' | 'replace', text: string, work: () => void): string {
  let isRead = false
  const call = (...values: [never, never]): unknown => {
    if (!isRead) work()
    isRead = true
    return text[method](...values)
  }
  return Object.assign(new String(text), { [method]: call }) as unknown as string
}

const [DESCRIPTION, CONTEXT] = ['Send it to Endpoint.', 'text: y']

interface PlannedParts {
  readonly description?: string
  readonly context?: string
  readonly example?: Record<string, unknown>
}

test.each<[string, (work: () => void) => PlannedParts]>([
  ['description', (work) => ({ description: textWith('replace', DESCRIPTION, work) })],
  ['context', (work) => ({ context: textWith('trim', CONTEXT, work) })],
  ['payload', (work) => ({ example: exampleWith(work) })],
])('runs that begin at the same time are planned in turns: their %s', async (_what, optionsWith) => {
  const most = await countPerTurn((work) =>
    Array.from({ length: 10 }, () => {
      const source = webhookSource('Endpoint', {})
      const { example = { text: 'x' }, ...options }: PlannedParts = optionsWith(work)
      const run = createInMemoryRun({ description: DESCRIPTION, context: CONTEXT, sources: [source], ...options })
      // Its own reading, because that of a run looks at each example before the agent does.
      const readSources = async () => [{ ...source, exampleRequestBody: example }]
      return run.execute((agentRun) => builtinAgent({ ...agentRun, readSources }))
    }),
  )
  expect(most).toBeLessThanOrEqual(ONE_OR_TWO)
})

function exampleWith(work: () => void): Record<string, unknown> {
  let isRead = false
  return new Proxy(
    { text: 'x' },
    {
      ownKeys: (target) => {
        if (!isRead) work()
        isRead = true
        return Reflect.ownKeys(target)
      },
    },
  )
}
