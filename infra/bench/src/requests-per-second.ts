import autocannon from 'autocannon'

/** Requests of one kind to one server. */
export interface Load {
  readonly url: string
  /** Requested in turn by each connection, instead of the URL's path. */
  readonly paths?: readonly string[]
  readonly method?: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly connections: number
  readonly seconds: number
}

/**
 * Measures the requests answered per second.
 * @throws Error if a request fails or is not answered 2xx: errors are fast and would distort the figure.
 */
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
    throw new Error(`${load.url}: ${result.errors} errors, ${result.non2xx} responses other than 2xx`)
  }
  return result.requests.total / result.duration
}
