// The victim: an organization's client and its endpoint, in a process that the attacks do not slow down.
//   POST /      receives a payload
//   PUT /load   starts a VictimLoad
//   DELETE /    stops the load, waits for its payloads, and answers with VictimFigures
import { createServer } from 'node:http'
import { json, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VictimFigures, VictimLoad } from './victim.ts'

const READ_INTERVAL_MS = 50
const START_INTERVAL_MS = 100
const APP_READ_INTERVAL_MS = 100
const APP_SAVE_INTERVAL_MS = 500
const REQUEST_TIMEOUT_MS = 10_000
const DRAIN_TIMEOUT_MS = 15_000

/** Starts whose payload has not arrived, and when each was sent. */
const pending = new Map<string, number>()
const underWay = new Set<Promise<void>>()
let figures = emptyFigures()
let timers: NodeJS.Timeout[] = []
let count = 0

const server = createServer((req, res) => {
  if (req.method === 'POST') void text(req).then((body) => res.writeHead(receivePayload(body)).end())
  else if (req.method === 'PUT') void json(req).then((load) => res.writeHead(startLoad(load as VictimLoad)).end())
  else void stopLoad().then((result) => res.end(JSON.stringify(result)))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : ''}\n`)
})

function receivePayload(body: string): number {
  const context = (JSON.parse(body) as { text?: string }).text ?? ''
  const sentAt = pending.get(context)
  if (sentAt !== undefined) figures.startsMs.push(performance.now() - sentAt)
  else if (context.startsWith('victim start')) figures.errors.push('A payload arrived twice.')
  pending.delete(context)
  return 204
}

/** Sends at fixed times, whether or not earlier requests were answered: a service that stalls does not get fewer. */
function startLoad({ gatewayUrl, appUrl, workflowId, apiKey, appHeaders }: VictimLoad): number {
  figures = emptyFigures()
  const apiHeaders = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const send = async (path: string, init: RequestInit, expectedStatus: number): Promise<boolean> => {
    const [url, headers] = path.startsWith('/app/') ? [appUrl, appHeaders] : [gatewayUrl, apiHeaders]
    try {
      const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
      const answer = await response.text()
      if (response.status === expectedStatus) return true
      figures.errors.push(`${path}: ${response.status} ${answer.slice(0, 200)}`)
    } catch (error) {
      const { message, cause } = error as Error
      figures.errors.push(`${path}: ${cause instanceof Error ? cause.message : message}`)
    }
    return false
  }
  const time = async (timesMs: number[], path: string, init: RequestInit = {}): Promise<void> => {
    const sentAt = performance.now()
    if (await send(path, init, 200)) timesMs.push(performance.now() - sentAt)
  }
  const start = async (): Promise<void> => {
    const label = `victim start ${(count += 1)}`
    pending.set(label, performance.now())
    const init = { method: 'POST', body: JSON.stringify({ context: `text: ${label}` }) }
    if (!(await send(`/v1/workflows/${workflowId}/start`, init, 202))) pending.delete(label)
  }
  const save = { method: 'PUT', body: JSON.stringify({ is_active: true }) }
  timers = [
    every(READ_INTERVAL_MS, () => time(figures.readsMs, '/v1/organization')),
    every(START_INTERVAL_MS, start),
    every(APP_READ_INTERVAL_MS, () => time(figures.appReadsMs, '/app/workflows')),
    every(APP_SAVE_INTERVAL_MS, () => time(figures.appSavesMs, `/app/workflows/${workflowId}/active`, save)),
  ]
  return 204
}

function every(intervalMs: number, request: () => Promise<void>): NodeJS.Timeout {
  return setInterval(() => track(request()), intervalMs)
}

function track(request: Promise<void>): void {
  underWay.add(request)
  void request.finally(() => underWay.delete(request))
}

async function stopLoad(): Promise<VictimFigures> {
  for (const timer of timers) clearInterval(timer)
  await Promise.all(underWay)
  const endsAt = performance.now() + DRAIN_TIMEOUT_MS
  while (pending.size > 0 && performance.now() < endsAt) await sleep(20)
  for (const context of pending.keys()) figures.errors.push(`The payload of "${context}" did not arrive.`)
  pending.clear()
  return figures
}

function emptyFigures() {
  return {
    readsMs: [] as number[],
    startsMs: [] as number[],
    appReadsMs: [] as number[],
    appSavesMs: [] as number[],
    errors: [] as string[],
  } satisfies VictimFigures
}
