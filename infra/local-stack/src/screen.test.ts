import { describe, expect, test } from '@jest/globals'
import type { ReceivedWebhook } from './demo-endpoint.ts'
import { createScreen } from './screen.ts'

/** CSI as one C1 character, an escape sequence, and an override of the direction of text. */
const HOSTILE = '\u009b2J\u001b]0;title\u0007\u202egnp.exe'

function webhook(given: Partial<ReceivedWebhook> = {}): ReceivedWebhook {
  return {
    url: 'http://127.0.0.1:1/orders',
    headers: [`x-request-id: ${HOSTILE}`],
    requestId: 'demo',
    body: '{}',
    receivedAt: new Date(0),
    response: { status: 200, text: 'Order accepted.' },
    ...given,
  }
}

/** A screen whose output is the text. */
function captureScreen() {
  const output = { text: '' }
  const write = (text: string) => void (output.text += text)
  return { output, screen: createScreen({ write, writeError: write, isColoured: false, columns: undefined }) }
}

describe('the screen', () => {
  test.each([
    ['JSON', JSON.stringify({ order_id: HOSTILE })],
    ['a text', HOSTILE],
  ])('shows no control characters and no overrides of the direction of a webhook with %s', (_what, body) => {
    const { output, screen } = captureScreen()
    screen.webhookReceived(`Orders ${HOSTILE}`, webhook({ body, response: { status: 200, text: HOSTILE } }))
    expect(output.text).toContain('gnp.exe')
    expect(output.text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
  })

  test('shows the beginning of a long webhook', () => {
    const { output, screen } = captureScreen()
    screen.webhookReceived('Orders', webhook({ body: 'x'.repeat(1_000_000) }))
    expect(output.text.length).toBeLessThan(20_000)
    expect(output.text).toContain('… 992000 more characters')
  })
})
