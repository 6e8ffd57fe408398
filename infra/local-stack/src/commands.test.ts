import { describe, expect, test } from '@jest/globals'
import { withSettings } from './commands.ts'
import { startAgainCommand } from './demo.ts'

const workflow = { id: '0e9c6a3b-2f7d-4d1e-b6c4-91d2e8f4c532', name: 'Forward orders' }

const again = (platform: NodeJS.Platform): string =>
  startAgainCommand('http://127.0.0.1:1', 'wfk_1', { workflow }, platform)

describe('the commands that npm start shows', () => {
  test('set what they need as sh, or on Windows PowerShell, does', () => {
    const settings = { LOCAL_DIR: "Ada's data", PORT: '8090' }
    expect(withSettings(settings, 'npm start', 'linux')).toBe(String.raw`LOCAL_DIR='Ada'\''s data' PORT=8090 npm start`)
    expect(withSettings(settings, 'npm start', 'win32')).toBe(
      "$env:LOCAL_DIR='Ada''s data'; $env:PORT='8090'; npm start",
    )
    expect(withSettings({}, 'npm start', 'win32')).toBe('npm start')
  })

  test('start the workflow again with curl, or on Windows with Invoke-RestMethod', () => {
    expect(again('darwin')).toMatch(/^curl -X POST http:\/\/127\.0\.0\.1:1\/v1\/workflows\/[0-9a-f-]{36}\/start \\\n/)
    expect(again('win32')).toMatch(/^Invoke-RestMethod -Method Post http:\/\/127\.0\.0\.1:1\/v1\/workflows\/\S+ `\n/)
    expect(again('win32')).not.toMatch(/curl|\\$/m)
  })
})
