import type { DeliveryOutcome, RunStatus } from '@workflow-service/contract/enumerations'
import { type Column, type Format, showDuration, timeColumn } from './terminal.ts'

const COLOURS: Record<RunStatus | DeliveryOutcome, Format> = {
  queued: 'cyan',
  running: 'cyan',
  waiting: 'yellow',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'gray',
  accepted: 'green',
  rejected: 'red',
  timed_out: 'red',
  unreachable: 'red',
  refused: 'red',
  invalid: 'yellow',
  unknown: 'magenta',
  in_flight: 'cyan',
}

/** The colour of a run's status or a delivery's outcome; bold for one of a newer service. */
export function stateColour(state: string): Format {
  return (COLOURS as Record<string, Format>)[state] ?? 'bold'
}

/** A run of the database, or of the public API. */
interface RunRow {
  readonly id: string
  readonly workflow_id: string
  readonly status: string
  readonly error: string | null
  readonly created_at: Date | string
  readonly finished_at: Date | string | null
}

/** Returns the columns of a table of runs. `names` maps the workflows' ids to their names. */
export function runColumns(names: ReadonlyMap<string, string>): readonly Column<RunRow>[] {
  return [
    timeColumn('ACCEPTED (UTC)', (row) => row.created_at),
    { title: 'STATUS', value: ({ status }) => status, colour: ({ status }) => stateColour(status) },
    { title: 'TOOK', value: tookOf },
    { title: 'RUN', value: (row) => row.id, cut: 'id' },
    { title: 'WORKFLOW', value: (row) => names.get(row.workflow_id) ?? row.workflow_id, cut: 'name' },
    { title: 'ERROR', value: (row) => row.error ?? '' },
  ]
}

/** A delivery of a run: of the database, or of the public API. */
interface DeliveryRow {
  readonly id: string
  readonly source_id: string
  readonly source_name: string | null
  readonly outcome: string
  readonly status: number | null
  readonly created_at: Date | string
}

/** The first columns of a table of deliveries. */
export const DELIVERY_COLUMNS: readonly Column<DeliveryRow>[] = [
  timeColumn('SENT (UTC)', (row) => row.created_at),
  { title: 'TO', value: (row) => row.source_name ?? row.source_id, cut: 'name' },
  { title: 'OUTCOME', value: ({ outcome }) => outcome, colour: ({ outcome }) => stateColour(outcome) },
  { title: 'STATUS', value: ({ status }) => (status === null ? '–' : String(status)) },
]
export const DELIVERY_ID: Column<DeliveryRow> = { title: 'DELIVERY', value: (row) => row.id, cut: 'id' }

/** Formats the time from acceptance to the end. */
export function tookOf({ created_at: from, finished_at: to }: Pick<RunRow, 'created_at' | 'finished_at'>): string {
  return showDuration(to === null ? null : new Date(to).getTime() - new Date(from).getTime())
}
