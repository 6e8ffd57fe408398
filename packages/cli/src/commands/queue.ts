import { connectRabbitMq, type DeadLetter, type SessionQueue } from '@workflow-service/messaging'
import { waitFor } from '../wait-for.ts'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { parseLimit } from '../parse-options.ts'
import { Refusal } from '../refusal.ts'
import { paint, renderTable, showTime } from '../terminal.ts'

/** `wf queue show` */
export function addQueueCommands(program: Command, run: Run): void {
  const queue = program.command('queue').description('Show the queue of wake-ups for the runners.')
  addCommand(queue, 'show', 'Show how many messages wait, and those that could not be read, with the reason.')
    .option('--limit <n>', 'messages that could not be read, at most, oldest first', parseLimit, 25)
    .action(run(show))
}

/** How long the connection may take. */
const CONNECT_TIMEOUT_MS = 10_000

async function show(ctx: CliContext, { limit }: { limit: number }): Promise<CommandResult> {
  const settings = ctx.config.queue()
  const queue = connectRabbitMq({ ...settings, connectionName: 'wf' })
  try {
    const { ready, dead } = await depthOf(queue, settings.url)
    const deadLetters = dead === 0 ? [] : await queue.deadLetters(limit)
    return {
      json: { ready, dead, dead_letters: deadLetters.map(toJson) },
      text: (terminal) =>
        `${ready} waiting, ${dead === 0 ? 'none' : paint(terminal, 'red', String(dead))} that could not be read\n${
          dead === 0 ? '' : `\n${renderTable(terminal, COLUMNS, deadLetters, '')}`
        }`,
    }
  } finally {
    await queue.close()
  }
}

const COLUMNS = [
  { title: 'DIED (UTC)', value: ({ diedAt }: DeadLetter) => showTime(diedAt) },
  { title: 'REASON', value: ({ reason }: DeadLetter) => reason },
  { title: 'TYPE', value: ({ type }: DeadLetter) => type ?? '–' },
  { title: 'DETAIL', value: ({ detail }: DeadLetter) => detail },
  { title: 'BODY', value: ({ body }: DeadLetter) => body },
]

/** The connection is made in the background, again and again: this gives up at some time. */
async function depthOf(queue: SessionQueue, url: string): Promise<{ ready: number; dead: number }> {
  try {
    return await waitFor(async () => await queue.depth(), CONNECT_TIMEOUT_MS)
  } catch (error) {
    const { hostname, port } = new URL(url)
    throw new Refusal(
      `RabbitMQ at ${hostname}:${port || '5672'} does not answer (${(error as Error).message}). Is it running? AMQP_URL says where it is.`,
      {},
      error,
    )
  }
}

function toJson({ reason, detail, body, type, diedAt }: DeadLetter): object {
  return { reason, detail, body, type, died_at: diedAt }
}
