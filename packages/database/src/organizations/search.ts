import { type SearchOut, UUID_PATTERN } from '@workflow-service/contract'
import { type Db, foldCase, foldSearch } from '../connection/index.ts'
import { IS_OWN_KEY } from './api-keys.ts'
import { isDeliveryVisible, isSessionVisible, isVisible, queryVisible, USER_NAME, type Viewer } from './visibility.ts'

type Found = SearchOut['data'][number]

const MAX_FOUND = 20
const MAX_BY_NAME = 8

/** Finds things of the organization by a part of the name, by id, or by the id of a request. At most 20. */
export async function searchEverything(db: Db, viewer: Viewer, text: string): Promise<readonly Found[]> {
  const wanted = text.trim()
  if (wanted === '') return []
  if (!UUID_PATTERN.test(wanted)) {
    const named = await findByName(db, viewer, wanted)
    return named.length > 0 || /\s/.test(wanted) ? named : await findByRequestId(db, viewer, wanted)
  }
  const found = await queryVisible<Found>(db, viewer, FIND_BY_ID, wanted.toLowerCase())
  return found.length > 0 ? found : await findByRequestId(db, viewer, wanted)
}

// The search index finds the workflows; it also finds those whose description contains the text. Of many, those that
// begin with the text are left, which are shown first.
const FIND_BY_NAME = `
  (
    SELECT 'workflow' AS kind, id, name AS title, CASE WHEN is_active THEN 'Active' ELSE 'Inactive' END AS detail
    FROM (
      SELECT * FROM workflows
      WHERE workflow_search_grams(organization_id, search_text, 1)
          @> (SELECT workflow_search_grams($1, $3, least(char_length($3), 3)))
        AND organization_id = $1 AND strpos(split_part(search_text, '\uffff', 1), $3) > 0
    ) AS workflow
    WHERE ${isVisible('workflow', '$2')}
    ORDER BY strpos(search_text, $3) > 1, char_length(name), id LIMIT ${MAX_BY_NAME}
  )
  UNION ALL (
    SELECT 'webhook_source', id, name, endpoint_url FROM webhook_sources
    WHERE organization_id = $1 AND deleted_at IS NULL AND strpos(name_key, $5) > 0
    ORDER BY strpos(name_key, $5) > 1, name_key LIMIT ${MAX_BY_NAME}
  )
  UNION ALL (
    SELECT 'lookup', id, name, url FROM lookups
    WHERE organization_id = $1 AND strpos(name_key, $5) > 0
    ORDER BY strpos(name_key, $5) > 1, name_key LIMIT ${MAX_BY_NAME}
  )
  UNION ALL (
    SELECT 'user', users.id, ${USER_NAME}, users.email FROM users
    WHERE users.organization_id = $1
      AND strpos(lower(concat_ws(' ', users.first_name, users.last_name, users.email) COLLATE "default"), lower($4)) > 0
    ORDER BY strpos(lower(${USER_NAME} COLLATE "default"), lower($4)) = 1 DESC, users.email LIMIT ${MAX_BY_NAME}
  )
  UNION ALL (
    SELECT 'api_key', id, name, prefix FROM api_keys AS key
    WHERE organization_id = $1 AND $2::uuid IS NULL AND ${IS_OWN_KEY}
      AND (strpos(lower(name), lower($4)) > 0 OR starts_with($4, prefix) OR starts_with(prefix, $4))
    ORDER BY strpos(lower(name), lower($4)) = 1 DESC, created_at DESC, id DESC LIMIT ${MAX_BY_NAME}
  )`

async function findByName(db: Db, viewer: Viewer, text: string): Promise<Found[]> {
  const values = [foldSearch(text), text, foldCase(text.normalize('NFC')).normalize('NFC')]
  const rows = await queryVisible<Found>(db, viewer, FIND_BY_NAME, ...values)
  const beginsWithText = ({ title }: Found) => Number(foldCase(title).startsWith(foldCase(text)))
  return rows.toSorted((a, b) => beginsWithText(b) - beginsWithText(a)).slice(0, MAX_FOUND)
}

/** A run, for its row of `starts` named `start` with its `workflow`. */
const RUN_FOUND = `'run' AS kind, start.id, workflow.name AS title,
  start.status || to_char(start.created_at AT TIME ZONE 'UTC', ', YYYY-MM-DD HH24:MI:SS "UTC"') AS detail`

const DELIVERY_FOUND = `'delivery' AS kind, delivery.id, coalesce((
    SELECT name FROM webhook_sources WHERE organization_id = $1 AND webhook_sources.id = delivery.source_id
  ), '') AS title,
  delivery.outcome || to_char(delivery.created_at AT TIME ZONE 'UTC', ', YYYY-MM-DD HH24:MI:SS "UTC"') AS detail`

const FIND_BY_ID = `
  SELECT 'workflow' AS kind, id, name AS title, '' AS detail FROM workflows AS workflow
  WHERE organization_id = $1 AND id = $3 AND ${isVisible('workflow', '$2')}
  UNION ALL SELECT 'webhook_source', id, name, endpoint_url FROM webhook_sources
  WHERE organization_id = $1 AND id = $3 AND deleted_at IS NULL
  UNION ALL SELECT 'lookup', id, name, url FROM lookups WHERE organization_id = $1 AND id = $3
  UNION ALL SELECT ${RUN_FOUND} FROM starts AS start JOIN workflows AS workflow ON workflow.id = start.workflow_id
  WHERE start.organization_id = $1 AND start.id = $3 AND ${isVisible('workflow', '$2')}
  UNION ALL SELECT 'session', id, id::text, CASE WHEN is_open THEN 'Open' ELSE 'Closed' END FROM sessions
  WHERE organization_id = $1 AND id = $3 AND ${isSessionVisible('sessions', '$2')}
  UNION ALL SELECT ${DELIVERY_FOUND} FROM deliveries AS delivery
  WHERE delivery.organization_id = $1 AND delivery.id = $3 AND ${isDeliveryVisible('$2')}
  UNION ALL SELECT 'user', users.id, ${USER_NAME}, users.email FROM users WHERE users.organization_id = $1 AND users.id = $3
  UNION ALL SELECT 'api_key', id, name, prefix FROM api_keys AS key
  WHERE organization_id = $1 AND id = $3 AND $2::uuid IS NULL AND ${IS_OWN_KEY}`

/** The rows of the time in question that are compared; an index on request ids would cost every start two writes. */
const MAX_COMPARED = 20_000
const MAX_COMPARED_PER_SOURCE = 1_000
/**
 * How long before and after the time in its request id something can be recorded: clocks differ, and starts wait in a
 * batch.
 */
const BEFORE_MS = 30_000
const AFTER_MS = 90_000

const FIND_BY_REQUEST = `
  SELECT ${RUN_FOUND} FROM (
    SELECT * FROM starts WHERE organization_id = $1 AND created_at >= $4 AND created_at < $5
    ORDER BY created_at DESC, id DESC LIMIT ${MAX_COMPARED}
  ) AS start
  JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
  WHERE start.request_id = $3
  UNION ALL
  SELECT ${DELIVERY_FOUND} FROM (SELECT id FROM webhook_sources WHERE organization_id = $1 LIMIT 1000) AS source
  CROSS JOIN LATERAL (
    SELECT * FROM deliveries WHERE source_id = source.id AND created_at >= $4 AND created_at < $5
    ORDER BY created_at DESC, id DESC LIMIT ${MAX_COMPARED_PER_SOURCE}
  ) AS delivery
  WHERE delivery.request_id = $3 AND ${isDeliveryVisible('$2')}
  LIMIT ${MAX_FOUND}`

/**
 * Finds runs and deliveries by their request id. Our request ids begin with their time (UUIDv7), so that only the rows
 * of two minutes are compared; for an id that a caller chose, the newest ones are.
 */
async function findByRequestId(db: Db, viewer: Viewer, requestId: string): Promise<Found[]> {
  const timeMs = /^[0-9a-f]{8}-[0-9a-f]{4}-7/i.test(requestId)
    ? Number.parseInt(requestId.slice(0, 8) + requestId.slice(9, 13), 16)
    : undefined
  const [since, until] =
    timeMs === undefined ? ['-infinity', 'infinity'] : [new Date(timeMs - BEFORE_MS), new Date(timeMs + AFTER_MS)]
  return await queryVisible<Found>(db, viewer, FIND_BY_REQUEST, requestId, since, until)
}
