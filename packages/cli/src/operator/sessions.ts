import {
  closeSession,
  findWorkflowNames,
  listRuns,
  listSessionRows,
  newId,
  openSession,
  operatorOf,
  type SessionRow,
  showSession,
} from '@workflow-service/database'
import type { CommonOptions } from '../cli-command.ts'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { findId } from './find.ts'
import { CliError } from '../cli-error.ts'
import { formatFacts, paint, renderTable, showTime, timeColumn } from '../terminal.ts'
import { runColumns } from '../run-columns.ts'

export async function open(ctx: OrganizationContext, given: string | undefined): Promise<CommandResult> {
  const { db, organization } = ctx
  const id = given ?? newId()
  await openSession(db, id, operatorOf(organization.id))
  const session = await findSession(ctx, id)
  if (session.organization_id !== organization.id) {
    throw new CliError(`Session ${id} belongs to another organization. Choose another id, or omit it.`)
  }
  return { json: session, text: () => `Session ${session.id} of ${organization.name} is open.\n` }
}

export async function list(
  { db, organization }: OrganizationContext,
  { limit }: { limit: number },
): Promise<CommandResult> {
  const sessions = await listSessionRows(db, organization.id, limit)
  return listResult(
    sessions,
    [
      { title: 'SESSION', value: ({ id }) => id, cut: 'id' },
      {
        title: 'STATE',
        value: (session) => (session.is_open ? 'open' : 'closed'),
        colour: (session) => (session.is_open ? 'green' : 'dim'),
      },
      { title: 'STARTS', value: ({ starts }) => String(starts) },
      { title: 'WAITING', value: ({ starts, finished }) => String(starts - finished) },
      timeColumn('CREATED (UTC)', (session) => session.created_at),
      timeColumn('CLOSED (UTC)', (session) => session.closed_at),
    ],
    `${organization.name} has no sessions yet.`,
  )
}

export async function close(ctx: OperatorContext, prefix: string, options: CommonOptions): Promise<CommandResult> {
  const { id, organization_id: organizationId } = await findSession(ctx, prefix, options)
  await closeSession(ctx.db, { memberId: null }, id, operatorOf(organizationId))
  const session = await findSession(ctx, id)
  const remaining = session.starts - session.finished
  return {
    json: session,
    text: () =>
      `Session ${id} is closed.${remaining === 0 ? '' : ` Accepted starts that will still run: ${remaining}.`}\n`,
  }
}

const MAX_RUNS = 20

export async function show(ctx: OperatorContext, prefix: string, options: CommonOptions): Promise<CommandResult> {
  const session = await findSession(ctx, prefix, options)
  const { id, organization_id: organizationId } = session
  const runs = await listRuns(ctx.db, organizationId, { sessionId: id, limit: MAX_RUNS })
  const workflowIds = runs.map((row) => row.workflow_id)
  const names = await findWorkflowNames(ctx.db, organizationId, workflowIds)
  const { lease, starts, finished } = session
  const facts: [string, string][] = [
    ['organization', organizationId],
    ['starts', `${starts} accepted, ${finished} finished`],
  ]
  if (lease) facts.push(['leased by', `${lease.owner}, epoch ${lease.epoch}, until ${showTime(lease.until)} UTC`])
  return {
    json: { ...session, runs },
    text: (terminal) =>
      [
        `Session ${paint(terminal, 'bold', id)} is ${describeState(session)}.\n`,
        formatFacts(terminal, facts),
        `\n${renderTable(terminal, runColumns(names), runs, 'It has no runs yet.')}`,
      ].join(''),
  }
}

async function findSession(
  ctx: OperatorContext,
  prefix: string,
  { organization }: CommonOptions = {},
): Promise<SessionRow> {
  const id = await findId(ctx, 'session', prefix, organization)
  const session = await showSession(ctx.db, id)
  if (!session) throw new CliError(`There is no session ${id}.`)
  return session
}

function describeState({ is_open, created_at, closed_at }: SessionRow): string {
  return is_open ? `open since ${showTime(created_at)} UTC` : `closed since ${showTime(closed_at)} UTC`
}
