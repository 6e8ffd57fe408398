import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { EvaluationCase } from '../evaluation/case-schema.ts'
import { readCases, toText } from '../evaluation/read-cases.ts'
import { runCase } from '../evaluation/run-case.ts'
import { BUILTIN_ONLY } from '../src/agent/agent-settings.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { useRunnerFixture } from './support/runner-fixture.ts'

/** What a run did, whether in process or on real services. */
interface Ended {
  readonly status: string
  readonly error: string | null
  readonly deliveries: readonly { readonly source: string; readonly payload: unknown; readonly outcome: string }[]
}

const CASES = [
  'orders-json-object',
  'values-contradiction',
  'blind1-decisions-only-if',
  'values-codes-keep-their-zeros',
  'endpoints-one-of-two-rejects',
  'attacks-json-prototype',
  'rules-above-threshold',
  'rules-field-is-missing',
]

const cases = readCases(join(import.meta.dirname, '../evaluation/cases/*.json'))
const chosen = CASES.map((id) => cases.find((entry) => entry.id === id)!)

/** Executes the case with a database, a dispatcher, an endpoint and a runner. */
async function runOnServices({ workflow, sources, context }: EvaluationCase): Promise<Ended> {
  const organization = await fixture.createOrganization({
    description: toText(workflow.description),
    files: (workflow.files ?? []).map(({ path, content }) => ({ name: path, content: toText(content) })),
    sources: Object.fromEntries(
      sources.map(({ name, example, endpoint = [{ status: 204 }] }) => [
        name,
        { example, answer: endpoint[0] as object },
      ]),
    ),
  })
  const start = await fixture.start(organization, { context: toText(context) })
  const [details] = await fixture.waitForRuns([start])
  const outcomes = new Map(details!.deliveries.map(({ source_name, outcome }) => [source_name, outcome]))
  const deliveries = organization.endpoint.requests.map(({ path, json }) => {
    const source = sources.find(({ name }) => path === `/${encodeURIComponent(name)}`)?.name ?? 'Order intake'
    return { source, payload: json, outcome: outcomes.get(source) ?? 'none' }
  })
  return { status: details!.status, error: details!.error, deliveries }
}

const fixture = useRunnerFixture()

test('an evaluated run ends as on real services', async () => {
  await fixture.startRunner()
  for (const entry of chosen) {
    const { status, error, deliveries } = await runCase(createAgent(BUILTIN_ONLY), entry, 1)
    expect({ id: entry.id, ...(await runOnServices(entry)) }).toEqual({ id: entry.id, status, error, deliveries })
  }
}, 60_000)
