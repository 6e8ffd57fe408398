import { STATUS_CODES } from 'node:http'
import {
  type Format,
  paint,
  showDuration,
  type Terminal,
  toShownPath,
  withoutControls,
} from '@workflow-service/cli/terminal'
import type { ArrivedWebhook } from './demo-endpoint.ts'
import type { DemoStart } from './demo.ts'

/** What the local stack shows while it boots and runs. */
export interface Screen {
  title(): void
  /** Shows that the work is under way, and how long it took when it is done; the work may give a remark. */
  step<Result>(label: string, work: (remark: (text: string) => void) => Promise<Result>): Promise<Result>
  demoStarted(workflowName: string, start: DemoStart): void
  /** `since`: when the start was sent, if this is the webhook of the demo's own start. */
  webhookArrived(sourceName: string, webhook: ArrivedWebhook, since?: Date): void
  demoIsMissing(hint: string): void
  ready(facts: { isFirst: boolean; gatewayUrl: string; curl: string; localDir: string; logsDir: string }): void
  stopping(): void
  line(text?: string): void
  fault(message: string): void
}

const CLEAR_LINE = '\r\u001b[2K'

/** On a terminal a step under way shows at once; elsewhere, a line for each step that is done. */
export function createScreen(terminal: Terminal): Screen {
  const isLive = terminal.columns !== undefined
  const line = (text = '') => terminal.write(text === '' ? '\n' : `  ${text}\n`)
  const colour = (format: Format, text: string) => paint(terminal, format, text)
  const heading = (text: string) => {
    line()
    line(colour('bold', text))
    line()
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
    step: async (label, work) => {
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
    demoStarted: (workflowName, { url, body, status, answer }) => {
      heading('What happens now')
      line(`${colour('cyan', '1')}  The workflow "${workflowName}" is started through the public API:`)
      line()
      indented(`POST ${url}\nAuthorization: Bearer wfk_…\n\n${JSON.stringify(body)}`)
      line()
      indented(colour('green', `${status} ${STATUS_CODES[status]}`))
      indented(JSON.stringify(answer, null, 2))
    },
    webhookArrived: (sourceName, webhook, since) => {
      line()
      const took = since ? ` ${showDuration(webhook.receivedAt.getTime() - since.getTime())} later:` : ':'
      const [first, second] = since ? ['2', '3'] : [showClock(webhook.receivedAt), '→']
      line(
        since
          ? `${colour('cyan', first)}  A runner took it up, the agent read it, and this reached "${sourceName}"${took}`
          : `${colour('cyan', first)}  Another webhook reached "${sourceName}"${took}`,
      )
      line()
      const headers = webhook.headers.map(([name, value]) => `${name}: ${value}`)
      indented([`${webhook.method} ${webhook.url}`, ...headers].join('\n'))
      line()
      indented(prettyJson(webhook.body))
      line()
      const { token, answer } = webhook
      const verdict = token.ok
        ? 'The endpoint checked the token: authentic'
        : `The endpoint refused the token: ${token.reason}`
      line(
        `${colour('cyan', second)}  ${verdict}. It answered ${colour(answer.status < 300 ? 'green' : 'red', String(answer.status))} "${withoutControls(answer.text)}"`,
      )
    },
    stopping: () => {
      if (isLive) terminal.write(CLEAR_LINE)
      line()
      line('Stopping: what is under way ends first …')
    },
    demoIsMissing: (hint) => {
      line()
      line(colour('yellow', `The demo's webhook has not arrived yet. ${hint}`))
    },
    ready: ({ isFirst, gatewayUrl, curl, localDir, logsDir }) => {
      heading(isFirst ? 'Do it again, from another terminal' : 'Ready, with the data of before. From another terminal:')
      indented(curl)
      line()
      const folder = toShownPath(localDir)
      const facts: [string, string][] = [
        ['API reference', `${gatewayUrl}/docs`],
        ['What ran', 'npm run -s wf -- runs list'],
        ['What was sent', 'npm run -s wf -- logs "Order intake"'],
        ['Your own', 'copy infra/local-stack/demo.yaml, then npm run -s wf -- apply FILE'],
        ['Logs', toShownPath(logsDir)],
        ['Data', `${folder}, kept until you remove it`],
        ['Stop', 'Ctrl-C'],
      ]
      for (const [name, value] of facts) line(`${colour('dim', name.padEnd(13))}  ${value}`)
      line()
    },
    fault: (message) => {
      const [first = '', ...rest] = message.split('\n')
      terminal.writeError(`\n  ${colour('red', '✗')} ${first}\n${rest.map((more) => `    ${more}\n`).join('')}\n`)
    },
  }

  function indented(text: string): void {
    for (const part of text.split('\n')) terminal.write(part === '' ? '\n' : `     ${part}\n`)
  }
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return withoutControls(text)
  }
}

function showClock(time: Date): string {
  return time.toTimeString().slice(0, 8)
}
