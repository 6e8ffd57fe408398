import { newId } from '@workflow-service/database'
import { createActiveSessions } from '../../src/sessions/active-sessions.ts'

/** A leased session with epoch 3, among the active sessions of a runner with ten slots. */
export function createLeasedSession() {
  const activeSessions = createActiveSessions(10)
  const session = activeSessions.add({ lease: { sessionId: newId(), epoch: 3 }, organizationId: newId() })
  return { activeSessions, session }
}
