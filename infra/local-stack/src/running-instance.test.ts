import { resolve } from 'node:path'
import { expect, test } from '@jest/globals'
import { alreadyRunningError } from './running-instance.ts'

test.each([
  ['.local', 8080, 'LOCAL_DIR=.local2 PORT=8090'],
  ['.local2', 8090, 'LOCAL_DIR=.local22 PORT=8100'],
])('a second start in the folder %s is told another folder and port than those in use', (folder, port, settings) => {
  const running = { PID: '1', GATEWAY_URL: `http://127.0.0.1:${port}` }
  const { message } = alreadyRunningError(resolve(folder), running)
  expect(message).toContain(`run a second one beside it: ${settings} npm start`)
})
