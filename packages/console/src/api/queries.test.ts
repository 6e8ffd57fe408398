import { afterEach, expect, test } from '@jest/globals'
import { QueryObserver } from '@tanstack/react-query'
import { queryClient, refresh } from './queries.ts'

afterEach(() => queryClient.clear())

test.each([[['listUsers', {}]], [['listUsers', {}, 'pages']]])(
  'a change that arrives during the first read of %j is shown, although that read began before it',
  async (queryKey) => {
    let value = 'old'
    const first = Promise.withResolvers<void>()
    const observer = new QueryObserver(queryClient, {
      queryKey,
      queryFn: async () => {
        const read = value
        await first.promise
        return read
      },
      refetchInterval: false,
    })
    const stop = observer.subscribe(() => {})
    value = 'new'
    const refreshed = refresh(['users'])
    first.resolve()
    await refreshed
    expect(observer.getCurrentResult().data).toBe('new')
    stop()
  },
)
