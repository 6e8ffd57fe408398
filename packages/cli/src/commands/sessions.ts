import {
  closeSession,
  findWorkflowNames,
  listRuns,
  newId,
  openSession,
  operatorOf,
  type SessionRow,
  showSession,
} from '@workflow-service/database'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { findOrganization, withOrganization } from '../find-organization.ts'
import { parseId } from '../parse-options.ts'
import { CliError } from '../cli-error.ts'
import { paint, renderTable, showTime } from '../terminal.ts'
import { runColumns, toRunJson } from './runs.ts'

/** `wf sessions open|close|show` */
export function addSessionsCommands(program: Command, run: Run): void {
  const sessions = program
    .command('sessions')
    .description('Open, close and show sessions. The starts of a session run one after another.')
  withOrganization(addCommand(sessions, 'open', 'Create a session, or reopen a closed one.'))
    .argument('[id]', 'its id (default: a new one)', parseId)
    .action(run(open))
  addCommand(sessions, 'close', 'Close a session. It accepts no more starts; accepted ones still run.')
    .argument('<id>', 'its id', parseId)
    .action(run(close))
  addCommand(sessions, 'show', 'Show a session with its newest runs.')
    .argument('<id>', 'its id', parseId)
    .action(run(show))
}

async function open(
  ctx: CliContext,
  given: string | undefined,
  options: { organization?: string },
): Promise<CommandResult> {
  const organization = await findOrganization(ctx, options.organization)
  const id = given ?? newId()
  const isOpened = await openSession(ctx.database(), organization.id, id, operatorOf(organization.id))
  const session = await findSession(ctx, id)
  if (session.organization_id !== organization.id) {
    throw new CliError(`Session ${id} belongs to another organization. Choose another id, or omit it.`)
  }
  if (isOpened) ctx.hint(organization.id, 'sessions')
  return { json: session, text: () => `Session ${session.id} of ${organization.name} is open.\n` }
}

async function close(ctx: CliContext, id: string): Promise<CommandResult> {
  const { organization_id: organizationId } = await findSession(ctx, id)
  const viewer = { organizationId, memberId: null }
  const isClosed = await closeSession(ctx.database(), viewer, id, operatorOf(organizationId))
  if (isClosed) ctx.hint(organizationId, 'sessions')
  const session = await findSession(ctx, id)
  const remaining = session.starts - session.finished
  return {
    json: session,
    text: () =>
      `Session ${id} is closed.${remaining === 0 ? '' : ` Accepted starts that will still run: ${remaining}.`}\n`,
  }
}

const MAX_RUNS = 20

async function show(ctx: CliContext, id: string): Promise<CommandResult> {
  const session = await findSession(ctx, id)
  const organizationId = session.organization_id
  const runs = await listRuns(ctx.database(), organizationId, { sessionId: id, limit: MAX_RUNS })
  const names = await findWorkflowNames(
    ctx.database(),
    organizationId,
    runs.map((row) => row.workflow_id),
  )
  return {
    json: { ...session, runs: runs.map(toRunJson) },
    text: (terminal) =>
      [
        `Session ${paint(terminal, 'bold', id)} is ${describeState(session)}.\n`,
        `  organization  ${organizationId}\n`,
        `  starts        ${session.starts} accepted, ${session.finished} finished\n`,
        session.lease
          ? `  leased by     ${session.lease.owner}, epoch ${session.lease.epoch}, until ${showTime(new Date(session.lease.until))} UTC\n`
          : '',
        `\n${renderTable(terminal, runColumns(names), runs, 'It has no runs yet.')}`,
      ].join(''),
  }
}

async function findSession(ctx: CliContext, id: string): Promise<SessionRow> {
  const session = await showSession(ctx.database(), id)
  if (!session) throw new CliError(`There is no session ${id}.`)
  return session
}

function describeState({ is_open, created_at, closed_at }: SessionRow): string {
  return is_open ? `open since ${showTime(created_at)} UTC` : `closed since ${showTime(closed_at)} UTC`
}
