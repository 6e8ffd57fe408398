import { describe, expect, test } from '@jest/globals'
import { checkDescription } from './check-description.ts'

const sources = ['Order intake', 'Billing', 'Audit log', 'Only Big Deals', '受注'].map((name) => ({ name }))

function codes(description: string): string[] {
  return checkDescription(description, sources).map(({ code }) => code)
}

describe('a description that the built-in agent can follow', () => {
  test.each([
    ['Forward the order to Order intake.'],
    ['An order came in. Send it to Order intake, then to Billing.'],
    ['Forward the order to Order intake, then send it to the Audit log.'],
    ['When a new order comes in, post it to Order intake. Copy it to the audit log.'],
    ['Whenever an order is received, send it to Order intake once.'],
    ['For each new order, send it to Order intake.'],
    ['Sobald eine Bestellung eingeht, sende sie an Order intake.'],
    ['Sende die Bestellung an Order intake und eine Kopie an Billing.'],
    ['注文が届いたら、受注に送ってください。'],
    ['注文を受注に送信してください。担当者が確認します。'],
    ['Send the order no. and the total to Only Big Deals.'],
    ['Do not invent values. Send the order to Order intake.'],
    ['Send every order to Order intake. If you have questions about it, ask Petra.'],
    ['Send every order to Order intake. Bei Fragen hilft Petra.'],
    ['Send the daily parcel list to Order intake.'],
    ['Send Every New Order To Order intake.'],
    ['Sende jede Bestellung aus Hamburg an Order intake.'],
    ['If a value is missing, leave it empty.\nSend the order to Order intake.'],
    ['Send orders to Order intake and then to Billing.'],
    ['Send the customer to Billing and the order to Order intake.'],
    ['Send each order with name, e-mail and score to Order intake.'],
    ['Send new leads with name and e-mail to Billing.'],
    ['- Order intake\n- Billing'],
    ["The order's data goes to Order intake, and a copy to Billing."],
    ['Each order goes to Order intake. It also goes to Billing.'],
    ['Order intake gets the order. Billing gets the amount.'],
    ['First Order intake, then Billing.'],
    ['Write the lead with first name and last name to Billing.'],
    ['注文を受注に送り、Billingに通知する。'],
    ['Post shipped orders to Order intake.'],
    ['Versendete Bestellungen an Order intake melden.'],
  ])('has no warning: %s', (description) => {
    expect(checkDescription(description, sources)).toEqual([])
  })
})

describe('a description that needs rules', () => {
  test.each([
    ['Send it to Billing only if the total is over 100.'],
    ['Send it to Billing unless it is paid.'],
    ['Send it to Billing once the payment is confirmed.'],
    ['Given that the customer is new, inform Billing.'],
    ['Should the amount be high, inform Billing.'],
    ['Send it to Order intake, skipping cancelled ones.'],
    ['Send it to Order intake after business hours.'],
    ['Send it to Order intake with priority 1.'],
    ['Bei Reklamationen Billing informieren.'],
    ['Sollte der Betrag hoch sein, an Billing melden.'],
    ['高額注文は Billing に送ってください。'],
    ['Send orders with a discount to Billing.'],
    ['Leite Bestellungen mit einem Rabatt an Billing weiter.'],
    ['Post complaints to Billing; everything positive goes to Order intake.'],
    ['Address changes go to Order intake, Audit log to Billing.'],
    ['Inform Billing about refunds and Order intake about upgrades.'],
    ['Reklamationen gehen an Billing, Lob geht an Order intake.'],
    ['請求書はBillingへ、注文は受注へ送る。'],
    ['Billingには送らず、受注に送る。'],
    ['Send the order to Order intake. Test orders must be dropped.'],
    ['Send it to the right team: Order intake, Billing.'],
    ['Every order over one thousand euros goes to Billing.'],
    ['Ask Billing for approval first, then send to Order intake.'],
    ['Send the order to Billing, and the number that Billing returns to Order intake.'],
    ['Wait for the answer of Billing.'],
    ['Send the order to Order intake with the quantity doubled.'],
    ['Send the sum of all lines to Billing.'],
    ['Set priority high and send it to Billing.'],
    ['Send the priority (high for outages) to Billing.'],
    ['Send just the first item to Billing.'],
    ['Send the sick notes of our Hamburg office to Billing.'],
    ['Send orders to Billing daily.'],
    ['Create one entry in Billing per person.'],
    ['Make sure the total is positive, then send it to Billing.'],
    ['Write a subject line and send it to Billing.'],
    ['Never send it to Billing.'],
    ["Don't send it to Billing."],
    ['Don’t send it to Billing.'],
    ['Send it to Order intake, otherwise to Billing.'],
    ['Send it either to Order intake or to Billing.'],
    ['If the total is over 100: send to Order intake. Otherwise to Billing'],
    ['Orders over 100 EUR are special.\nThese go to Billing.'],
    ['Orders above €500 go to Billing.'],
    ['Urgent tickets go to Billing.'],
    ['Send it to Order intake, but invoices to Billing.'],
    ['Send invoices to Billing and orders to Order intake.'],
    ['Tickets from Germany go to Billing, tickets from France to Order intake.'],
    ['Rechnungen an Billing, Bestellungen an Order intake.'],
    ['When an invoice arrives, send it to Billing. When an order arrives, send it to Order intake.'],
    ['When an urgent order comes in, send it to Billing.'],
    ['Sende es an Billing, wenn der Betrag über 1000 Euro liegt.'],
    ['Sende es nicht an Billing.'],
    ['Sende es an Billing, außer der Kunde ist neu.'],
    ['Nur bezahlte Aufträge an Billing.'],
    ['合計が1万円以上の場合は受注に送信。'],
    ['受注には送信しないでください。'],
    ['Summarize the ticket in one sentence and post it to Audit log.'],
    ['Set the priority to high and send it to Billing.'],
    ['Post each line item separately to Order intake.'],
    ['Before you send it to Billing, send it to Order intake.'],
    ['Send it to Billing after Order intake.'],
    ['Send it to whichever of Billing and Order intake fits.'],
    ['Envoyer à Billing, sauf si le client est nouveau.'],
  ])('has the warning rules_needed: %s', (description) => {
    expect(codes(description)).toEqual(['rules_needed'])
  })

  test('has a warning that names the word, its kind and the sentence', () => {
    expect(checkDescription('An order came in. Send it to Order intake unless it is paid. Thanks!', sources)).toEqual([
      {
        code: 'rules_needed',
        message:
          'The description holds a condition ("unless"), which the built-in agent does not interpret. Write a rules.yaml, or set a model',
        excerpt: 'Send it to Order intake unless it is paid.',
      },
    ])
  })

  test.each([
    ['Send totals of at least 250 to Billing.', 'at least 250'],
    ['Send totals of 1,250.50 or more to Billing.', '1,250.50 or more'],
    ['Send urgent tickets to Billing.', 'urgent tickets'],
  ])('quotes whole numbers and words: %s', (description, quoted) => {
    expect(checkDescription(description, sources)[0]?.message).toContain(`(${JSON.stringify(quoted)})`)
  })
})

describe('the names in a description', () => {
  test('are warned of when there are none', () => {
    expect(codes('Send it somewhere, if you can.')).toEqual(['no_source_named'])
    expect(checkDescription('Send it to Billing.', [])).toMatchObject([
      { code: 'no_source_named', message: expect.stringMatching(/has no webhook source/) },
    ])
  })

  test('are warned of when a quoted one is unknown', () => {
    expect(checkDescription('Send it to "Billing" and "Shipping".', sources)).toMatchObject([
      { code: 'unknown_source_named', excerpt: 'Shipping' },
    ])
  })
})

describe('the check takes linear time', () => {
  test.each([
    ['a word without an end', 'a'.repeat(50_000)],
    ['spaces', `when${' '.repeat(50_000)}`],
    ['conditions that never end', 'set a '.repeat(10_000)],
    ['arrivals that never arrive', 'when a new new order has '.repeat(2_000)],
    ['names', 'Billing nach '.repeat(4_000)],
    ['sentences', 'no. '.repeat(12_500)],
    ['plural words', 'orders '.repeat(7_000)],
    ['numbers', 'over the total '.repeat(3_000)],
    ['Chinese characters', '当'.repeat(50_000)],
  ])('of %s', (_what, text) => {
    const before = process.threadCpuUsage()
    checkDescription(`Billing Audit log ${text}`, sources)
    expect(process.threadCpuUsage(before).user).toBeLessThan(500_000)
  })
})
