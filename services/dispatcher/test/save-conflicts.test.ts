import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { type Answer, sourceIn, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

/** Answers two verification requests only after both have arrived, so that their saves are concurrent. */
async function answerTwoTogether(): Promise<{ status: number }> {
  await dispatcher.endpoint.waitForRequests(2)
  return { status: 200 }
}

const statusesOf = (answers: Answer[]): number[] => answers.map(({ status }) => status).toSorted((a, b) => a - b)

describe('409', () => {
  test('a name is taken ignoring case, and no request is sent', async () => {
    await dispatcher.save(newId(), { name: 'Straße École' })
    dispatcher.endpoint.requests.length = 0
    for (const name of ['STRASSE ÉCOLE', 'straße école', ' Straße E\u0301cole ']) {
      expect(await dispatcher.save(newId(), { name })).toMatchObject({
        status: 409,
        body: { error: { code: 'name_taken' } },
      })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test('a rename keeps the id and frees the old name', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Old name' })
    expect(await dispatcher.save(id, { name: 'OLD NAME' })).toMatchObject({
      status: 200,
      body: { id, name: 'OLD NAME' },
    })
    expect((await dispatcher.save(id, { name: 'New name' })).status).toBe(200)
    expect((await dispatcher.save(newId(), { name: 'old name' })).status).toBe(201)
  })

  test.each([0, 2])('a version that is not the stored one (%i) changes nothing and sends nothing', async (version) => {
    const id = newId()
    const saved = await dispatcher.save(id, { name: `Versioned ${id}` }, '?version=0')
    expect(saved).toMatchObject({ status: 201, body: { version: 1 } })
    dispatcher.endpoint.requests.length = 0
    expect(await dispatcher.save(id, { name: `Other ${id}` }, `?version=${version}`)).toMatchObject({
      status: 409,
      body: { error: { code: 'source_changed' } },
    })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect((await dispatcher.readSource(id)).body).toEqual(saved.body)
  })

  test('a repeated save with the version that it replaced is answered 200 and sends nothing', async () => {
    const id = newId()
    await dispatcher.save(id, { name: `Repeated ${id}` })
    const change = { name: `Repeated ${id}`, description: 'changed' }
    const saved = await dispatcher.save(id, change, '?version=1')
    expect(saved).toMatchObject({ status: 200, body: { version: 2, description: 'changed' } })
    dispatcher.endpoint.requests.length = 0
    expect(await dispatcher.save(id, change, '?version=1')).toEqual({ ...saved, headers: expect.anything() })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test('another organization may use the same name', async () => {
    const other = await dispatcher.createOrganization()
    await dispatcher.save(newId(), { name: 'Shared name' })
    const path = sourcePath(other, newId())
    const answer = await dispatcher.call(
      'PUT',
      path,
      sourceIn({ name: 'Shared name', endpoint_url: dispatcher.endpoint.url }),
    )
    expect(answer.status).toBe(201)
  })

  test('the name of a deleted source can be used again, its id cannot', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Short-lived' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(id))
    expect(await dispatcher.save(id, { name: 'Short-lived' })).toMatchObject({
      status: 409,
      body: { error: { code: 'id_taken' } },
    })
    expect((await dispatcher.save(newId(), { name: 'Short-lived' })).status).toBe(201)
  })

  test("the id of another organization's source is refused", async () => {
    const other = await dispatcher.createOrganization()
    const id = newId()
    const before = (await dispatcher.save(id, { name: 'Mine' })).body
    dispatcher.endpoint.requests.length = 0
    const path = sourcePath(other, id)
    const answer = await dispatcher.call('PUT', path, sourceIn({ endpoint_url: dispatcher.endpoint.url }))
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'id_taken' } } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect((await dispatcher.readSource(id)).body).toEqual(before)
  })

  test('an edit of a source that is not there has one answer, whether the id is unused, deleted or of another organization', async () => {
    const [deleted, foreign] = [newId(), newId()]
    const other = await dispatcher.createOrganization()
    const source = sourceIn({ name: 'Theirs', endpoint_url: dispatcher.endpoint.url })
    expect((await dispatcher.call('PUT', sourcePath(other, foreign), source)).status).toBe(201)
    await dispatcher.save(deleted, { name: 'Gone' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    await dispatcher.save(newId(), { name: 'Present' })
    dispatcher.endpoint.requests.length = 0
    for (const id of [newId(), deleted, foreign]) {
      for (const name of ['An edit', 'Present']) {
        const answer = await dispatcher.save(id, { name }, '?version=1')
        expect(answer).toMatchObject({ status: 409, body: { error: { code: 'id_taken' } } })
      }
    }
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('of two concurrent saves one is written completely, and the other gets source_changed', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Contested', signing_secret: 'secret zero' })
    dispatcher.endpoint.requests.length = 0
    dispatcher.endpoint.answerWith(answerTwoTogether)
    const one = {
      name: 'One',
      description: 'one',
      endpoint_url: `${dispatcher.endpoint.url}/one`,
      signing_secret: 'secret one',
    }
    const two = {
      name: 'Two',
      description: 'two',
      endpoint_url: `${dispatcher.endpoint.url}/two`,
      signing_secret: 'secret two',
    }
    const answers = await Promise.all([dispatcher.save(id, one), dispatcher.save(id, two)])
    expect(statusesOf(answers)).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('source_changed')
    const stored = (await dispatcher.readSource(id)).body
    const winner = stored.name === 'One' ? one : two
    expect(stored).toMatchObject({ description: winner.description, endpoint_url: winner.endpoint_url })

    dispatcher.endpoint.answerWith({ status: 204 })
    dispatcher.endpoint.requests.length = 0
    await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(dispatcher.endpoint.requests[0]?.json).toMatchObject({
      data: { signing_secret: winner.signing_secret, target_url: winner.endpoint_url },
    })
  })

  test('a save that keeps the secret is never combined with a new secret that it did not verify', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Mixture', signing_secret: 'old secret' })
    dispatcher.endpoint.requests.length = 0
    dispatcher.endpoint.answerWith(async (request) => {
      await dispatcher.endpoint.waitForRequests(2)
      // Delays the save that keeps the secret, so that the new secret is written first.
      if (request.text.includes('old secret')) await dispatcher.call('GET', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    const answers = await Promise.all([
      dispatcher.save(id, { name: 'Mixture', signing_secret: 'new secret' }),
      dispatcher.save(id, { name: 'Mixture', endpoint_url: `${dispatcher.endpoint.url}/kept` }),
    ])
    expect(statusesOf(answers)).toEqual([200, 409])
  })

  test('two concurrent saves with the same values both succeed', async () => {
    for (const id of [newId(), newId()]) {
      dispatcher.endpoint.requests.length = 0
      dispatcher.endpoint.answerWith(answerTwoTogether)
      const source = { name: `Twins ${id}`, signing_secret: 'the same secret' }
      const answers = await Promise.all([dispatcher.save(id, source), dispatcher.save(id, source)])
      expect(statusesOf(answers)).toEqual([200, 201])
    }
  })

  test('of two concurrent new sources with one name, one gets it', async () => {
    dispatcher.endpoint.answerWith(answerTwoTogether)
    const answers = await Promise.all([
      dispatcher.save(newId(), { name: 'Contested name' }),
      dispatcher.save(newId(), { name: 'CONTESTED NAME' }),
    ])
    expect(statusesOf(answers)).toEqual([201, 409])
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('name_taken')
  })

  test('a save does not restore a source that was deleted meanwhile', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Deleted meanwhile' })
    dispatcher.endpoint.answerWith(async () => {
      await dispatcher.call('DELETE', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    expect(await dispatcher.save(id, { name: 'Deleted meanwhile' })).toMatchObject({
      status: 409,
      body: { error: { code: 'id_taken' } },
    })
    expect((await dispatcher.readSource(id)).status).toBe(404)
  })
})
