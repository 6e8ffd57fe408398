import { setTimeout as sleep } from 'node:timers/promises'
import { splitHosts } from '@workflow-service/contract'
import { connectRabbitMq, type DeadLetter, type SessionQueue } from '@workflow-service/messaging'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { paint, renderTable, timeColumn } from '../terminal.ts'

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'amqp:': '5672', 'amqps:': '5671' }
const CONNECT_TIMEOUT_MS = 5_000
const CONNECT_POLL_MS = 100

export async function show(ctx: OperatorContext, { limit }: { limit: number }): Promise<CommandResult> {
  const settings = ctx.config.queue()
  const queue = connectRabbitMq({ ...settings, connectionName: 'wf' })
  try {
    const { ready, dead } = await readDepth(queue)
    const deadLetters = dead === 0 ? [] : await queue.deadLetters(limit)
    return {
      json: {
        ready,
        dead,
        dead_letters: deadLetters.map(({ diedAt, ...letter }) => ({ ...letter, died_at: diedAt })),
      },
      text: (terminal) =>
        `${ready} waiting, ${dead === 0 ? 'none' : paint(terminal, 'red', String(dead))} dead-lettered\n${
          dead === 0 ? '' : `\n${renderTable(terminal, COLUMNS, deadLetters, '')}`
        }`,
    }
  } catch (error) {
    throw queueError(settings.url, error)
  } finally {
    await queue.close()
  }
}

const COLUMNS = [
  timeColumn('DEAD SINCE (UTC)', ({ diedAt }: DeadLetter) => diedAt),
  { title: 'REASON', value: ({ reason }: DeadLetter) => reason },
  { title: 'TYPE', value: ({ type }: DeadLetter) => type ?? '–' },
  { title: 'DETAIL', value: ({ detail }: DeadLetter) => detail, cut: 'name' as const },
  { title: 'BODY', value: ({ body }: DeadLetter) => body },
]

/** Polls, because the queue connects in the background and rejects until it is connected. */
async function readDepth(queue: SessionQueue): Promise<{ ready: number; dead: number }> {
  const deadlineMs = performance.now() + CONNECT_TIMEOUT_MS
  for (;;) {
    try {
      return await queue.depth()
    } catch (error) {
      if (performance.now() >= deadlineMs) throw error
    }
    await sleep(CONNECT_POLL_MS)
  }
}

function queueError(url: string, error: unknown): CliError {
  const hosts = splitHosts(url).map((each) => new URL(each))
  const names = hosts.map(({ protocol, hostname, port }) => `${hostname}:${port || DEFAULT_PORTS[protocol]}`)
  const { message } = error as Error
  return new CliError(
    `RabbitMQ at ${names.join(',')} does not answer (${message}). Check that it is running and that AMQP_URL is right.`,
    {},
    error,
  )
}
