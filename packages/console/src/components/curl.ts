const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A request as a command line. Only `headers` may contain variables of the shell. */
export function curlText(url: string, headers: readonly string[], body?: unknown): string {
  const lines = [`curl ${quoted(url)}`, ...headers.map((header) => `-H ${header}`)]
  return [...lines, ...(body === undefined ? [] : [`--data ${quoted(JSON.stringify(body))}`])].join(' \\\n  ')
}

/** A header without variables of the shell. */
export const curlHeader = (name: string, value: string) => quoted(`${name}: ${value}`)
