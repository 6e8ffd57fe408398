import { describe, expect, test } from '@jest/globals'
import { fitRunPrompt, RUN_PROMPT_MAX_BYTES, type RunPrompt } from './conversation.ts'

const tool = { name: 'send', description: 'Sends.', schema: { type: 'object' } }
const prompt: RunPrompt = { instructions: 'Send it.', tools: [tool], message: 'Order 17' }
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

describe('a prompt that is kept', () => {
  test('is whole up to its limit', () => {
    expect(fitRunPrompt(prompt)).toBe(prompt)
  })

  test('never exceeds it, regardless of what is long', () => {
    // Six bytes of JSON for each character.
    const long = '\u0001'.repeat(50_000)
    const tools = Array.from({ length: 50 }, () => ({ ...tool, description: long, schema: { text: long } }))
    const fitted = fitRunPrompt({ instructions: long, tools, message: long })
    expect(fitted.tools.every(({ schema }) => schema === null)).toBe(true)
    expect(bytesOf(fitted)).toBeLessThanOrEqual(RUN_PROMPT_MAX_BYTES)
    expect(fitted.omitted_bytes).toBeGreaterThan(bytesOf(long))
  })
})
