import { jsonOf, type OpenApiDocument, type Operation } from './openapi-document.ts'
import type { Code } from './render-code.ts'

export type CodeSample = Code

/** A request with example values. */
export interface RequestToSample {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/**
 * Describes the request of an operation with example values: required parameters, and the first example of the body.
 */
export function describeRequest(document: OpenApiDocument, operation: Operation): RequestToSample {
  const { parameters, requestBody, method, path = '' } = operation
  const examples = Object.values(jsonOf(requestBody?.content)?.examples ?? {})
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const example = parameters.find((each) => each.name === name)?.schema.examples?.[0]
    return typeof example === 'string' ? example : name.toUpperCase()
  })
  const idempotencyKey = parameters.find(({ name }) => name === 'Idempotency-Key')?.schema.examples?.[0]
  return {
    method,
    url: `${document.servers[0]?.url}${filled}`,
    headers: {
      ...(examples[0] ? { 'Content-Type': 'application/json' } : {}),
      ...(typeof idempotencyKey === 'string' ? { 'Idempotency-Key': idempotencyKey } : {}),
    },
    body: examples[0]?.value,
  }
}

/** Creates samples that need no library: curl and Python. The credential is in an environment variable. */
export function createSamples(request: RequestToSample, credential: string): [CodeSample, CodeSample] {
  return [
    { label: 'curl', language: 'bash', text: toCurl(request, credential) },
    { label: 'Python', language: 'python', text: toPython(request, credential) },
  ]
}

function toCurl({ method, url, headers, body }: RequestToSample, credential: string): string {
  const options = [
    `-H "Authorization: Bearer $${credential}"`,
    ...Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`),
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`]),
  ]
  return [`curl${method === 'GET' ? '' : ` -X ${method}`} '${url}'`, ...options].join(' \\\n  ')
}

function toPython({ method, url, headers, body }: RequestToSample, credential: string): string {
  const lines = Object.entries(headers).map(([name, value]) => `        "${name}": "${value}",`)
  return [
    'import json',
    'import os',
    'import sys',
    'import urllib.error',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    "${url}",`,
    `    method="${method}",`,
    '    headers={',
    `        "Authorization": f"Bearer {os.environ['${credential}']}",`,
    ...lines,
    '    },',
    ...(body === undefined ? [] : [`    data=json.dumps(${indent(toPythonValue(body), 4)}).encode(),`]),
    ')',
    'try:',
    '    with urllib.request.urlopen(request, timeout=30) as response:',
    '        print(response.status, response.read().decode())',
    'except urllib.error.HTTPError as answer:',
    '    error = json.load(answer)["error"]',
    `    sys.exit(f"{answer.code} {error['code']}: {error['message']}")`,
  ].join('\n')
}

function toPythonValue(value: unknown): string {
  // Names of the constants outside of strings.
  return JSON.stringify(value, null, 4).replaceAll(/"(?:[^"\\]|\\.)*"|\btrue\b|\bfalse\b|\bnull\b/g, (token) => {
    const constants: Record<string, string> = { true: 'True', false: 'False', null: 'None' }
    return constants[token] ?? token
  })
}

function indent(text: string, spaces: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(spaces)}`)
}
