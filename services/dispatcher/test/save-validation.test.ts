import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { callDispatcher, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

/** Returns field and code of each error of a save that is refused before a request is sent. */
async function validationErrors(change: Record<string, unknown>): Promise<[string, string][]> {
  const answer = await dispatcher.save(newId(), change)
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'validation_error' } } })
  expect(dispatcher.endpoint.requests).toHaveLength(0)
  return answer.body.error.details.map(({ field, code }) => [field, code])
}

describe('422 validation_error', () => {
  test.each([
    ['another scheme', 'ftp://hooks.example.com/', 'url_scheme'],
    ['2,001 characters', `https://hooks.example.com/${'a'.repeat(1_975)}`, 'string_too_long'],
    ['no characters', '', 'string_too_short'],
    ['a private address', 'http://10.0.0.1/', 'url_not_public'],
  ])('refuses an endpoint URL with %s', async (_what, url, code) => {
    expect(await validationErrors({ endpoint_url: url })).toEqual([['endpoint_url', code]])
  })

  test('refuses localhost and loopback by default', async () => {
    const strict = await dispatcher.startAnother({}, { allowedSubnets: { cidrs: [], contains: () => false } })
    for (const host of ['localhost', '127.0.0.1', '[::1]', '0x7f.1']) {
      const source = sourceIn({ endpoint_url: `http://${host}:${dispatcher.endpoint.port}/` })
      const answer = await callDispatcher(strict.url, 'PUT', dispatcher.sourcePath(newId()), source)
      expect(answer).toMatchObject({
        status: 422,
        body: {
          error: {
            message: expect.stringMatching(/^endpoint_url: The endpoint must be publicly reachable: /),
            details: [{ field: 'endpoint_url', code: 'url_not_public' }],
          },
        },
      })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test('refuses an X-Actor that is not valid, before anything is sent', async () => {
    const path = dispatcher.sourcePath(newId())
    const source = sourceIn({ endpoint_url: dispatcher.endpoint.url })
    const answer = await dispatcher.call('PUT', path, source, { 'x-actor': '{"name":"Ada"}' })
    expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ field: 'X-Actor' }] } } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test.each([
    ['a list', [1]],
    ['null', null],
  ])('refuses %s as the example', async (_what, example) => {
    expect(await validationErrors({ example_request_body: example })).toEqual([['example_request_body', 'dict_type']])
  })

  test('refuses the type of a verification request in the example', async () => {
    const example = { type: 'service.webhook.verification', id: 1 }
    expect(await validationErrors({ example_request_body: example })).toEqual([
      ['example_request_body.type', 'reserved_value'],
    ])
  })

  test('accepts that type deeper in the example', async () => {
    const example = { event: { type: 'service.webhook.verification' } }
    expect((await dispatcher.save(newId(), { example_request_body: example })).status).toBe(201)
  })

  test.each([
    ['is larger than 64 KiB', { text: 'x'.repeat(64 * 1024) }, 'too_large'],
    ['has a list of more than 100 items', { lines: Array.from({ length: 101 }, () => 1) }, 'too_long'],
    [
      'has more than 500 fields',
      Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`field_${index}`, 1])),
      'too_many_fields',
    ],
  ])('refuses an example that %s', async (_what, example, code) => {
    expect(await validationErrors({ example_request_body: example })).toEqual([['example_request_body', code]])
  })

  test('refuses an example that nests too deep, even 100,000 levels', async () => {
    for (const levels of [40, 100_000]) {
      const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: {} }))
      const body = text.replace(
        '"example_request_body":{}',
        `"example_request_body":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`,
      )
      const answer = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), body)
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: [{ field: 'example_request_body', code: 'too_deep' }] } },
      })
    }
  })

  test.each(['12345678901234567890', '1e-400', '0.12345678901234567890'])(
    'refuses the number %s, which JavaScript cannot represent exactly',
    async (number) => {
      const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: { n: 0 } }))
      const answer = await dispatcher.call(
        'PUT',
        dispatcher.sourcePath(newId()),
        text.replace('"n":0', `"n":${number}`),
      )
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: [{ field: 'example_request_body', code: 'inexact_number' }] } },
      })
    },
  )

  test('reports every invalid field at once, in the order of the schema', async () => {
    expect(
      await validationErrors({
        name: '   ',
        description: 5,
        endpoint_url: 'nonsense',
        signing_secret: '',
        example_request_body: [],
        extra: 1,
      }),
    ).toEqual([
      ['name', 'string_too_short'],
      ['description', 'string_type'],
      ['endpoint_url', 'url_parsing'],
      ['signing_secret', 'string_too_short'],
      ['example_request_body', 'dict_type'],
      ['extra', 'extra_forbidden'],
    ])
  })

  test('does not repeat the secret', async () => {
    const answer = await dispatcher.save(newId(), { signing_secret: 'do-not-repeat-me', endpoint_url: 'nonsense' })
    expect(JSON.stringify(answer.body)).not.toContain('do-not-repeat-me')
  })
})
