-- Reads the approval of a payload. By hand: the runner reads it before it sends, and does without Prisma.
-- Parameters: $1 organization, $2 delivery. Rows: at most one.
SELECT status, decided_by_name AS "decidedBy", reason, edited_body AS payload,
  status = 'waiting' AND expires_at <= now() AS "isOverdue"
FROM approvals WHERE organization_id = $1 AND delivery_id = $2
