import { expect, test } from '@jest/globals'
import { findChromium } from './find-chromium.ts'

test('a Chromium is the one in CHROMIUM_PATH, if that can be executed', async () => {
  expect(await findChromium(undefined, process.execPath)).toBe(process.execPath)
  await expect(findChromium(undefined, '/nowhere')).rejects.toThrow(
    'The browser in CHROMIUM_PATH cannot be executed: /nowhere',
  )
})
