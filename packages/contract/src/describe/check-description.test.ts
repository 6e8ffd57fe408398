import { describe, expect, test } from '@jest/globals'
import { checkDescription, readDescription } from './check-description.ts'

const sources = ['Order intake', 'Billing', 'Audit log', '受注', 'Only Big Deals'].map((name) => ({ name }))

function named(description: string, organization = sources): string[] {
  const { named: found, rulesNeeded } = readDescription(description, organization)
  return rulesNeeded ? ['rules_needed'] : found.map(({ name }) => name)
}

describe('a description of the grammar', () => {
  test.each([
    ['Send it to Order intake.', 'Order intake'],
    ['Forward the order to Order intake', 'Order intake'],
    ['post to ORDER   intake', 'Order intake'],
    ['Deliver everything to Only Big Deals.', 'Only Big Deals'],
    ['Send this to 受注.', '受注'],
    ['Post all orders to Order intake, Billing and Audit log.', 'Order intake, Billing, Audit log'],
    ['Post to Order intake and Billing, then to Audit log.', 'Order intake, Billing, Audit log'],
    ['An order came in. Send each order to "Order intake", then to “Billing”.', 'Order intake, Billing'],
    ['New résumé arrives.\nSend every RÉSUMÉ to Billing\nForward it to Order intake.', 'Billing, Order intake'],
    ['The new lead arrived. Send a lead to "Billing."', 'Billing'],
    ['Send it to Billing. Send it to Billing, then to Order intake.', 'Billing, Order intake'],
  ])('names its sources in order, each once: %s', (description, expected) => {
    expect(named(description).join(', ')).toBe(expected)
  })

  test.each([
    ['Send it to Order intake.', ['Order', 'intake', 'Order intake'], ['Order intake']],
    ['Send it to Order and Billing.', ['Order', 'Billing', 'Order and Billing'], ['rules_needed']],
    ['Send it to "Order and Billing".', ['Order', 'Billing', 'Order and Billing'], ['Order and Billing']],
    ['Send it to “Order” and "Billing."', ['Order', 'Billing', 'Order and Billing'], ['Order', 'Billing']],
    ['Send it to "Order and Billing.', ['Order', 'Billing', 'Order and Billing'], ['rules_needed']],
    ['Send it to "Acme Inc."', ['Acme Inc.', 'Acme Inc'], ['rules_needed']],
    ['Send it to Acme Inc. Send it to C++.', ['Acme Inc.', 'C++'], ['Acme Inc.', 'C++']],
    ['Send it to Acme Inc.', ['Acme Inc.', 'Acme Inc'], ['rules_needed']],
    ['Send it to "A".', ['A', '"A"'], ['rules_needed']],
    ['Send every order to Order.', ['Order', 'Every'], ['Order']],
    ['Send it to İstanbul.', ['İstanbul'], ['İstanbul']],
  ])(
    'has names that are those of sources exactly, and refuses one that can be several: %s',
    (text, names, expected) => {
      expect(
        named(
          text,
          names.map((name) => ({ name })),
        ),
      ).toEqual(expected)
    },
  )

  test.each(['', 'New order', 'A new order:', 'An order came in.', 'The order arrives:', 'new:'])(
    'may come with the input message %j',
    (message) => {
      expect(readDescription('Send the order to Billing.', sources, message).rulesNeeded).toBeUndefined()
    },
  )

  test.each(['Never send it.', 'Orders', 'Cancelled:', 'Amount: 5', 'An invoice:', 'Send it to Billing.', '注文'])(
    'is refused with the input message %j',
    (message) => {
      const { rulesNeeded } = readDescription('Send the order to Billing.', sources, message)
      expect(rulesNeeded).toMatchObject({ code: 'rules_needed', excerpt: message })
    },
  )
})

describe('a description that is not of the grammar', () => {
  test.each([
    ['An order came in. If it is large, send it to Billing. Done.', 'If it is large, send it to Billing.'],
    [
      'Send it to Billing only if the total is over 100.50 EUR.',
      'Send it to Billing only if the total is over 100.50 EUR.',
    ],
    [`Send ${'x'.repeat(300)} to Billing`, `Send ${'x'.repeat(195)}`],
  ])('is refused with the sentence that is not understood: %s', (description, excerpt) => {
    const message = expect.stringMatching(/write a rules\.yaml, or set a model/)
    expect(checkDescription(description, sources)).toEqual([{ code: 'rules_needed', message, excerpt }])
  })

  test.each([
    ['Send every invoice to Billing. Send every order to Order intake.'],
    ['A refund came in. Send every order to Order intake.'],
    ['Send everything to Audit log. Send the order to Billing.'],
    ['Send all to Billing.'],
    ['Send the new to Billing.'],
    ['Send no order to Billing.'],
    ['Send every unpaid order to Billing.'],
    ['Send half to Billing.'],
    ['Send every second order to Billing.'],
    ['Send every non-member to Billing.'],
    ['Send the 1st to Billing.'],
    ['Send it to Billing or Order intake.'],
    ['Send it not to Billing.'],
    ['Send it to Billing and Nowhere.'],
    ['Send it to Billing, but not now.'],
    ['Send it to Billing!'],
    ['Billing'],
    ['Order intake is down; use Billing.'],
    ['Send the 注文 to Billing.'],
  ])('is refused: %s', (description) => {
    expect(named(description)).toEqual(['rules_needed'])
  })

  test('is refused in each of 12 languages, as a condition, a choice or a negation, in any sentence', () => {
    expect(generateDescriptions().filter((description) => named(description)[0] !== 'rules_needed')).toEqual([])
  })

  test('is refused if one word of a sentence is another one, or is added', () => {
    const words = 'Send the order to Order intake, then to Billing.'.split(' ')
    const others = ['not', 'never', 'unpaid', 'half', 'except', 'large', '5', 'если', '不', 'nicht']
    const changed = words.flatMap((_, index) =>
      others.flatMap((other) => [words.toSpliced(index, 0, other), ...(index === 2 ? [] : [words.with(index, other)])]),
    )
    expect(changed.map((parts) => named(parts.join(' '))).filter(([first]) => first !== 'rules_needed')).toEqual([])
  })
})

describe('checkDescription', () => {
  test('does not offer the sentence that it refuses, if a name can be several', () => {
    const names = ['Order', 'Billing', 'Order and Billing'].map((name) => ({ name }))
    const [warning] = checkDescription('Send it to Order and Billing.', names)
    expect(warning?.message).toBe(
      'The description has a name that can be several webhook sources. Put it in quotation marks, rename one of them, write a rules.yaml, or set a model',
    )
  })

  test('says that runs fail because of the input message of the trigger', () => {
    const message = expect.stringMatching(/^The input message of the trigger is neither empty nor such as/)
    expect(checkDescription('Send it to Billing.', sources, 'Only if it is paid.')).toEqual([
      { code: 'rules_needed', message, excerpt: 'Only if it is paid.' },
    ])
    const different = /^The description and the input message of the trigger name different things, order and invoice\./
    expect(checkDescription('Send the order to Billing.', sources, 'A new invoice:')).toMatchObject([
      { message: expect.stringMatching(different), excerpt: 'A new invoice:' },
    ])
    expect(checkDescription('Send it to Billing.', sources, 'A new order:')).toEqual([])
  })

  test('says that no source is named, before the other reasons', () => {
    expect(checkDescription('Do "something".', sources).map(({ code }) => code)).toEqual([
      'no_source_named',
      'unknown_source_named',
    ])
    expect(checkDescription('Send it to Billing.', [])).toMatchObject([
      { code: 'no_source_named', message: expect.stringContaining('has no webhook source') },
    ])
  })

  test('reads 50,000 characters with 1,000 names of 200 lengths, and names of the text without end', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => ({
      name: 'ab, '.repeat(50).slice(0, 1 + (index % 200)) + index,
    }))
    expect(named(`Send it to ${'ab, '.repeat(12_000)}`, [...names, { name: 'ab' }])).toEqual([])
    expect(named(`Send it to ${'ab, '.repeat(900)}ab`, [...names, { name: 'ab' }])).toEqual(['ab'])
  })
})

/** A condition, a choice or a negation in each language, as the only sentence and beside one that is understood. */
function generateDescriptions(): string[] {
  const sentences = [
    'If it is paid, send it to Billing.',
    'Alternate between Billing and Order intake.',
    'Do not send it to Billing.',
    'Sende es an Billing oder Order intake.',
    "N'envoyez rien à Billing.",
    'Pedidos de más de 500 € a Billing.',
    'Se pago, enviar para Billing.',
    'Inviare a Billing oppure a Order intake.',
    'Niet naar Billing sturen.',
    'Om den är betald, skicka till Billing.',
    'Albo Billing, albo Order intake.',
    'Не отправлять в Billing.',
    '已付款的订单发送到 Billing。',
    'Billing か Order intake に送ってください。',
    'Billing로 보내지 마세요.',
  ]
  const around = [
    (sentence: string) => sentence,
    (sentence: string) => `An order came in. ${sentence}`,
    (sentence: string) => `Send it to Audit log. ${sentence}`,
    (sentence: string) => `${sentence} Send it to Audit log.`,
    (sentence: string) => `${sentence}\nForward every order to Order intake`,
    (sentence: string) => sentence.replace(/[.。]$/u, ', then to Audit log.'),
    (sentence: string) => `Send the order to Audit log, ${sentence}`,
  ]
  return around.flatMap((place) => sentences.map(place))
}
