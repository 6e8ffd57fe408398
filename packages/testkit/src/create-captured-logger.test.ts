import { expect, test } from '@jest/globals'
import { createCapturedLogger } from './create-captured-logger.ts'

test('a captured logger keeps what it writes, as objects and as text, without secrets', () => {
  const captured = createCapturedLogger({ service: 'runner', level: 'info' })
  captured.logger.debug('run.started')
  captured.logger.info({ session_id: 's1', token: 'secret' }, 'run.ended')
  expect(captured.lines).toMatchObject([{ level: 'info', service: 'runner', session_id: 's1', msg: 'run.ended' }])
  expect(captured.text).toContain('run.ended')
  expect(captured.text).not.toContain('secret')
})
