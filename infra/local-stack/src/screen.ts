import { STATUS_CODES } from 'node:http'
import {
  CLEAR_LINE,
  type Format,
  paint,
  showDuration,
  type Terminal,
  toShownPath,
  withoutControls,
} from '@workflow-service/cli/terminal'
import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { DemoStart } from './demo.ts'
import { logsDir } from './local-settings.ts'

/** What the local stack prints while it starts and runs. */
export type Screen = ReturnType<typeof createScreen>

export interface ReadyFacts {
  readonly isFirstStart: boolean
  readonly gatewayUrl: string
  readonly appUrl: string
  /** The one-time link that makes its reader the owner of the demo's organization; undefined once it has an owner. */
  readonly setupLink: { readonly url: string; readonly organizationName: string } | undefined
  /** Undefined when the demo's organization was deleted. */
  readonly demo:
    | {
        readonly organizationId: string
        /** Undefined when the webhook source was deleted. */
        readonly sourceName: string | undefined
        /** The command that starts the demo workflow again; undefined when it cannot be started. */
        readonly startAgain: string | undefined
      }
    | undefined
  /** The command that runs `wf` on this local stack. */
  readonly wf: string
  readonly localDir: string
}

/** Of the headers and the body of a webhook, each. */
const MAX_SHOWN_LENGTH = 8_000

type Printer = ReturnType<typeof createPrinter>

function createPrinter(terminal: Terminal) {
  const line = (text = '') => terminal.write(text === '' ? '\n' : `  ${text}\n`)
  const colour = (format: Format, text: string) => paint(terminal, format, text)
  const heading = (text: string) => {
    line()
    line(colour('bold', text))
    line()
  }
  const indented = (text: string) => {
    for (const part of text.split('\n')) terminal.write(part === '' ? '\n' : `     ${part}\n`)
  }
  return { line, colour, heading, indented }
}

/** On a terminal, a step shows from its beginning; elsewhere, each step prints one line when it has ended. */
export function createScreen(terminal: Terminal) {
  const isLive = terminal.columns !== undefined
  const printer = createPrinter(terminal)
  const { line, colour, heading, indented } = printer
  /** A text from outside: of each line only what can be seen, and of a long text its beginning. */
  const received = (text: string) => {
    const shown = text.slice(0, MAX_SHOWN_LENGTH)
    indented(shown.split('\n').map(withoutControls).join('\n'))
    if (shown.length < text.length) indented(`… ${text.length - shown.length} more characters`)
  }

  return {
    line,
    title: () => {
      line()
      line(
        `${colour('bold', 'Workflow Automation Service')} ${colour('dim', '· everything in one process, on this machine')}`,
      )
      line()
    },
    /** Prints a label when the work has ended, with its duration and the note that the work may give. */
    step: async <Result>(label: string, work: (setNote: (note: string) => void) => Promise<Result>) => {
      const startedMs = performance.now()
      let note = ''
      if (isLive) terminal.write(`  ${colour('dim', `… ${label}`)}`)
      try {
        const result = await work((text) => (note = text))
        const facts = [note, showDuration(performance.now() - startedMs)].filter((fact) => fact !== '')
        if (isLive) terminal.write(CLEAR_LINE)
        line(`${colour('green', '✓')} ${label} ${colour('dim', facts.map((fact) => `· ${fact}`).join(' '))}`)
        return result
      } catch (error) {
        if (isLive) terminal.write(CLEAR_LINE)
        throw error
      }
    },
    demoStarted: (workflowName: string, { url, body, status, response }: DemoStart) => {
      heading('The demo')
      line(`${colour('cyan', '1')}  A call of the public API starts the workflow "${workflowName}":`)
      line()
      indented(`POST ${url}\nAuthorization: Bearer wfk_…\n\n${JSON.stringify(body)}`)
      line()
      indented(colour('green', `${status} ${STATUS_CODES[status]}`))
      indented(JSON.stringify(response, null, 2))
    },
    /** `startedAt`: when the demo sent its start; only for the webhook of that start. */
    webhookReceived: (sourceName: string, webhook: ReceivedWebhook, startedAt?: Date) => {
      line()
      if (startedAt) {
        const took = showDuration(webhook.receivedAt.getTime() - startedAt.getTime())
        line(
          `${colour('cyan', '2')}  A runner executed the workflow. The endpoint of "${withoutControls(sourceName)}" received this webhook ${took} later:`,
        )
      } else {
        const time = showClock(webhook.receivedAt)
        line(`${colour('cyan', time)}  The endpoint of "${withoutControls(sourceName)}" received another webhook:`)
      }
      line()
      received([`POST ${webhook.url}`, ...webhook.headers].join('\n'))
      line()
      received(prettyJson(webhook.body))
      line()
      const { response } = webhook
      const status = colour(response.status < 300 ? 'green' : 'red', String(response.status))
      line(
        `${colour('cyan', startedAt ? '3' : '→')}  It checked the token: authentic. It answered ${status} "${withoutControls(response.text)}"`,
      )
    },
    stopping: () => {
      if (isLive) terminal.write(CLEAR_LINE)
      line()
      line('Stopping: runs and requests in progress finish first …')
    },
    /** Prints what did not work, and below it what to do. The local stack keeps running. */
    warning: (message: string, hint?: string) => {
      line()
      line(colour('yellow', withoutControls(message)))
      if (hint) line(hint)
    },
    unusedSettings: (names: readonly string[]) => {
      line(colour('yellow', `Not used, because npm start sets its own: ${names.join(', ')}`))
    },
    ready: (facts: ReadyFacts) => showReady(printer, facts),
    error: (message: string) => {
      const [first = '', ...rest] = message.split('\n')
      terminal.writeError(`\n  ${colour('red', '✗')} ${first}\n${rest.map((more) => `    ${more}\n`).join('')}\n`)
    },
  }
}

/** Prints what to do next: the setup link or the application, another start, and where everything is. */
function showReady({ line, colour, heading, indented }: Printer, facts: ReadyFacts): void {
  const { isFirstStart, gatewayUrl, appUrl, setupLink, demo, wf, localDir } = facts
  const headings: string[] = []
  if (!isFirstStart) headings.push('Ready, with the data of the last time')
  if (setupLink) headings.push('Next: open the application')
  heading(headings.join('. ') || 'Ready')
  if (setupLink) {
    indented(colour('cyan', setupLink.url))
    line()
    line(`This link makes you the owner of ${setupLink.organizationName}. It works once: do not pass it on.`)
  } else {
    line(`The application: ${colour('cyan', appUrl)}`)
  }
  line()
  if (demo?.startAgain) {
    const again = isFirstStart ? 'Or start the workflow again' : 'Start the workflow'
    line(`${again} through the API, from another terminal:`)
    line()
    indented(demo.startAgain)
    line()
  }
  const rows: [string, string][] = [['API reference', `${gatewayUrl}/docs`]]
  if (demo) {
    // By its id: a name may change, and there may be a second organization soon.
    const organization = `--organization ${demo.organizationId}`
    rows.push(['Runs', `${wf} runs list ${organization}`])
    if (demo.sourceName) rows.push(['Deliveries', `${wf} logs ${quote(demo.sourceName)} ${organization}`])
  }
  rows.push(
    ['Your own', `copy infra/local-stack/your-own.yaml, edit it, then ${wf} apply FILE`],
    ['Logs', toShownPath(logsDir(localDir))],
    ['Data', `${toShownPath(localDir)}, kept until you remove it`],
    ['Stop', 'Ctrl-C'],
  )
  for (const [name, value] of rows) line(`${colour('dim', name.padEnd(13))}  ${value}`)
  line()
}

/** Quotes a text for a shell; double quotes mean the same to every one. */
function quote(text: string): string {
  return /^[\w .-]+$/.test(text) ? `"${text}"` : `'${withoutControls(text).replaceAll("'", String.raw`'\''`)}'`
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function showClock(time: Date): string {
  return time.toTimeString().slice(0, 8)
}
