import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint, startStubModelServer, waitUntil } from '@workflow-service/testkit'
import { parse } from 'yaml'
import { type Promql, readPromql } from './support/read-promql.ts'
import { type RunningServices, useServices } from './support/use-services.ts'

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly labels?: { readonly severity: string }
  readonly annotations?: { readonly summary: string }
}
interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}

const { groups } = parse(read('../rules.yaml')) as { groups: { name: string; rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const recorded = new Set(rules.map(({ record }) => record))
const { panels } = JSON.parse(read('../dashboard.json')) as { panels: Panel[] }

/** Every expression with the place where it is. */
const expressions: [string, string][] = [
  ...rules.map(({ alert, record, expr }): [string, string] => [`rule ${alert ?? record}`, expr]),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }): [string, string] => [`panel ${title}`, expr.replaceAll('$__rate_interval', '5m')]),
  ),
]

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function parseMetrics(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, content]) => [label, content]),
    ),
    value: Number(value),
  }))
}

const services = useServices()
let samples: Sample[]
let samplesOfFirstScrape: Sample[]

async function scrape({ metricsUrls }: RunningServices): Promise<Sample[]> {
  const texts = await Promise.all(Object.values(metricsUrls).map(async (url) => (await fetch(url)).text()))
  return texts.flatMap(parseMetrics)
}

/** Runs one start with a model, so that every metric with labels has a sample. */
beforeAll(async () => {
  const endpoint = await startCustomerEndpoint()
  const model = await startStubModelServer({
    turns: [
      { toolCalls: [{ name: 'send_to_order_intake', arguments: { message: 'hello' } }] },
      { toolCalls: [{ name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }] },
    ],
  })
  const env = { AGENT_MODEL: 'openai-compatible:stub-1', AGENT_BASE_URL: model.baseUrl, AGENT_API_KEY: 'key' }
  const running = await services.startAll(env)
  try {
    samplesOfFirstScrape = await scrape(running)
    const workflow = await services.createWorkflow({ url: endpoint.url, signingSecret: null }, running.dispatcherUrl)
    const response = await fetch(`${running.gatewayUrl}/v1/workflows/${workflow.workflowId}/start`, {
      method: 'POST',
      headers: { authorization: `Bearer ${workflow.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ context: 'hello' }),
    })
    if (response.status !== 202) throw new Error(`The start was answered ${response.status}`)
    const socket = connect(Number(new URL(running.gatewayUrl).port), '127.0.0.1')
      .end('not HTTP\r\n\r\n')
      .resume()
    await once(socket, 'close')
    await waitUntil(
      async () => (await scrape(running)).some(({ name, value }) => name === 'runner_runs_total' && value > 0),
      { timeoutMs: 60_000, message: 'the run to end' },
    )
    // In the scrape that found the end, another service may have answered before it.
    samples = await scrape(running)
  } finally {
    await running.stop()
    await Promise.all([endpoint.close(), model.close()])
  }
}, 120_000)

describe('the expressions of the dashboard and of the rules', () => {
  test.each(expressions)('%s reads metrics and labels that the services export', (_where, expression) => {
    const { selectors, groupings }: Promql = readPromql(expression)
    expect(selectors).not.toEqual([])
    for (const { metric, matchers } of selectors) {
      if (recorded.has(metric)) continue
      const found = samples.filter(({ name }) => name === metric)
      expect([metric, found.length > 0]).toEqual([metric, true])
      for (const label of [...groupings, ...matchers.map((matcher) => matcher.label)]) {
        expect([metric, label, found.every(({ labels }) => label in labels)]).toEqual([metric, label, true])
      }
      for (const { label, operator, value } of matchers) {
        if (operator !== '=' && operator !== '!=') continue
        expect(found.map(({ labels }) => labels[label])).toContain(value)
      }
    }
  })

  test('an error in an expression is found', () => {
    expect(() => readPromql('sum(rate(a[5m])')).toThrow(SyntaxError)
    expect(() => readPromql('sum by (a b) (c)')).toThrow(SyntaxError)
    expect(readPromql('sum by (a) (rate(b{c="d", e=~"f"}[5m])) / g')).toEqual({
      selectors: [
        {
          metric: 'b',
          matchers: [
            { label: 'c', operator: '=', value: 'd' },
            { label: 'e', operator: '=~', value: 'f' },
          ],
        },
        { metric: 'g', matchers: [] },
      ],
      groupings: ['a'],
    })
  })
})

test.each(['sessions_waiting', 'sessions_waiting_oldest_seconds', 'session_queue_messages'])(
  '%s is exported by one process only, so that a sum is right',
  (metric) => {
    for (const scraped of [samplesOfFirstScrape, samples]) {
      const found = scraped.filter(({ name }) => name === metric)
      expect(found.map(({ labels }) => labels['queue'])).toEqual(
        metric === 'session_queue_messages' ? ['ready', 'dead'] : [undefined],
      )
    }
  },
)

test('each alert has a severity, a summary and a row in the troubleshooting of docs/operations.md', () => {
  const troubleshooting = read('../../../docs/operations.md').split('## Troubleshooting')[1] ?? ''
  const firstCells = [...troubleshooting.matchAll(/^\|(.*?)\|/gm)].map(([, cell = '']) => cell).join('\n')
  expect(alerts).not.toEqual([])
  for (const { alert, labels, annotations } of alerts) {
    expect(['page', 'ticket']).toContain(labels?.severity)
    expect(annotations?.summary).toBeTruthy()
    expect(firstCells).toContain(`\`${alert}\``)
  }
})

test('the dashboard shows traffic, errors, latency and saturation', () => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  expect(rows).toEqual(['Objectives', 'Traffic', 'Errors', 'Latency', 'Queue and saturation', 'Deliveries', 'Model'])
})
