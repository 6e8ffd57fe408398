-- Leases sessions of the CTE `candidate` and claims their first runs. A fragment of the two acquisitions.
-- `ranked` gives the slots to organizations in turn, the one with the fewest sessions at this runner first, and
--   `chosen` has as many as there are slots. Its time comes after the locks: the run before may have ended since the
--   statement began. `claimed` starts the next run of each, or fails it when it has no attempt left (`exhausted`), and
--   `acquired` moves the session past a failed one. It ends the wait for a paused source: a later resume must not end
--   another wait of the session.
-- The commit does not wait for the disk (`commit`), unless a run failed: what follows from a lease waits, and its
--   commit brings the lease to the disk. A lease that PostgreSQL loses when it crashes is acquired anew; the time in
--   its epoch, in microseconds, tells the two apart (docs/decisions/2).
-- Parameters: $1 owner, $2 duration of the lease in ms, $3 slots, $4 the most sessions of an organization.
ranked AS (
  SELECT candidate.id, candidate.number, candidate.waiting_since, coalesce(leased.sessions, 0) + row_number() OVER (
    PARTITION BY candidate.organization_id ORDER BY candidate.waiting_since, candidate.id
  ) AS rank
  FROM candidate LEFT JOIN leased ON leased.organization_id = candidate.organization_id
),
chosen AS MATERIALIZED (
  SELECT id, number, clock_timestamp() AS claimed_at FROM ranked WHERE rank <= $4 ORDER BY rank, waiting_since LIMIT $3
),
claimed AS (
  UPDATE starts SET
    status = CASE WHEN attempts < :MAX_RUN_ATTEMPTS THEN 'running' ELSE 'failed' END,
    error = CASE WHEN attempts >= :MAX_RUN_ATTEMPTS THEN :TOO_MANY_ATTEMPTS END,
    attempts = least(attempts + 1, :MAX_RUN_ATTEMPTS),
    started_at = coalesce(started_at, claimed_at),
    finished_at = CASE WHEN attempts >= :MAX_RUN_ATTEMPTS THEN now() END,
    not_succeeded_at = CASE WHEN attempts >= :MAX_RUN_ATTEMPTS THEN now() END
  FROM chosen
  WHERE starts.session_id = chosen.id AND starts.number = chosen.number AND starts.finished_at IS NULL
  RETURNING starts.*, claimed_at
),
exhausted AS MATERIALIZED (
  SELECT array_agg(session_id) AS session_ids FROM claimed WHERE status = 'failed'
),
acquired AS MATERIALIZED (
  UPDATE sessions SET
    lease_owner = $1,
    lease_epoch = greatest(lease_epoch + 1, (1000000 * extract(epoch FROM clock_timestamp()))::bigint),
    lease_until = clock_timestamp() + $2 * interval '1 millisecond',
    last_finished_number = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
      THEN last_finished_number + 1 ELSE last_finished_number END,
    waiting_since = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
      THEN CASE WHEN last_start_number > last_finished_number + 1 THEN now() END ELSE waiting_since END,
    paused_source_id = NULL
  WHERE id = ANY (ARRAY(SELECT id FROM chosen))
  RETURNING id, organization_id, lease_epoch
),
commit AS (
  SELECT set_config('synchronous_commit', 'off', true) FROM exhausted WHERE session_ids IS NULL
)
