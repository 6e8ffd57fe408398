import { expect, test } from '@jest/globals'
import { quoteInexactNumbers } from './quote-inexact-numbers.ts'

async function quoted(text: string): Promise<string> {
  const { body } = new Response(text)
  return await new Response(body?.pipeThrough(quoteInexactNumbers())).text()
}

test('a decimal number that a double cannot hold becomes a text, before the package of a provider parses it', async () => {
  expect(
    await quoted(
      '{"input":{"rate":0.12345678901234567890123,"ö":[1e999,-1.50]},"text":"3.14159265358979323846 \\" 1"}',
    ),
  ).toBe('{"input":{"rate":"0.12345678901234567890123","ö":["1e999",-1.50]},"text":"3.14159265358979323846 \\" 1"}')
})

test.each([
  ['{"avgLogprobs":-0.00012345678901234567,"a":[0.1,-2.5e-7,12345678901234567890]}'],
  ['{"text":"0.12345678901234567890123"}'],
  [''],
])('%s stays as it is', async (text) => {
  expect(await quoted(text)).toBe(text)
})
