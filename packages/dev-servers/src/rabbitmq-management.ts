/** Calls RabbitMQ's management API. The URL contains the credentials. */
export async function callManagementApi(
  managementUrl: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  const { username, password, origin } = new URL(managementUrl)
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return await fetch(origin + path, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/json',
      // The server may be closing the connection that an earlier call left open.
      connection: 'close',
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
}
