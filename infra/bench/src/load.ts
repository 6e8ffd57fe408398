import autocannon from 'autocannon'

/** A load of one kind on one address. */
export interface Load {
  readonly url: string
  /** Asked for in turn by each connection, in place of the URL's own path. */
  readonly paths?: readonly string[]
  readonly method?: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly connections: number
  readonly seconds: number
}

/** Requests answered per second. A failed or unexpected answer fails the measurement: it would be fast and worthless. */
export async function requestsPerSecond(load: Load): Promise<number> {
  const result = await autocannon({
    url: load.url,
    method: load.method ?? 'GET',
    headers: load.headers ?? {},
    ...(load.body === undefined ? {} : { body: load.body }),
    ...(load.paths === undefined ? {} : { requests: load.paths.map((path) => ({ path })) }),
    connections: load.connections,
    duration: load.seconds,
  })
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`${load.url}: ${result.errors} errors, ${result.non2xx} answers other than 2xx`)
  }
  return result.requests.total / result.duration
}
