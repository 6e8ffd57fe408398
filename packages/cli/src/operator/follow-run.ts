import { setTimeout as sleep } from 'node:timers/promises'
import { type RunDetails, showRun } from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import { type CommandResult, printedResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { createRunFormatter } from './format-run.ts'
import { paint, type Terminal } from '../terminal.ts'

const POLL_MS = 300

/**
 * Prints a run as it goes, until its end or Ctrl-C: its facts, each event once, and its deliveries; with JSON, one
 * object a line: the run whenever its status changes, and each step of its journal. The exit status is 1 if the run
 * did not succeed.
 */
export async function followRun(
  ctx: OperatorContext,
  first: RunDetails,
  { json, timeout }: FollowOptions,
): Promise<CommandResult> {
  const { terminal } = ctx
  const signal = ctx.interrupted(timeout)
  const print = json ? createJsonPrinter(terminal) : createTextPrinter(terminal, first)
  let run = first
  for (;;) {
    print(run)
    if (run.finished_at || signal.aborted) break
    await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    run = (await showRun(ctx.db, run.id)) ?? run
  }
  return printedResult(run.status === 'succeeded')
}

function createTextPrinter(terminal: Terminal, first: RunDetails): (run: RunDetails) => void {
  const formatter = createRunFormatter(terminal)
  terminal.write(formatter.head(first))
  let isWaiting = false
  return (run) => {
    terminal.write(formatter.news(run))
    if (run.status === 'waiting' && !isWaiting) {
      const advice = `Approve it with wf runs approve ${run.id}, or decline it with wf runs decline ${run.id}.`
      terminal.write(`${paint(terminal, 'yellow', advice)}\n`)
    }
    isWaiting = run.status === 'waiting'
    if (run.finished_at) terminal.write(formatter.deliveries(run))
  }
}

function createJsonPrinter(terminal: Terminal): (run: RunDetails) => void {
  let status: string | undefined
  let printed = 0
  const write = (line: object) => terminal.write(`${JSON.stringify(line)}\n`)
  return ({ steps, deliveries: _deliveries, approvals: _approvals, ...run }) => {
    for (const { position, kind, data, createdAt } of steps.slice(printed)) {
      write({ run_id: run.id, position, kind, data, created_at: createdAt })
    }
    printed = steps.length
    if (run.status !== status) write(run)
    status = run.status
  }
}
