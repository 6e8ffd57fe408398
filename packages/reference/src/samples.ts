import { examplesOf, type OpenApiDocument, type Operation } from './openapi-document.ts'
import type { Code } from './render-code.ts'

/** A request with example values. */
interface RequestToSample {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** The environment variable with the API key. */
const KEY = 'WORKFLOW_API_KEY'

/**
 * Creates the samples of an operation: beside that of the TypeScript client, those that need no library. They have
 * example values: required parameters, and the first example of the body.
 */
export function createSamples(document: OpenApiDocument, operation: Operation, ofClient: string): Code[] {
  const { parameters, requestBody, method, path } = operation
  const [body] = examplesOf(requestBody?.content)
  const exampleOf = (name: string): string | undefined => {
    const value = parameters.find((each) => each.name === name)?.schema.examples?.[0]
    return typeof value === 'string' ? value : undefined
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleOf(name) ?? name.toUpperCase())
  const idempotencyKey = exampleOf('Idempotency-Key')
  const request = {
    method,
    url: `${document.servers[0]?.url}${filled}`,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
    },
    body,
  }
  return [
    { label: 'curl', language: 'bash', text: toCurl(request) },
    { label: 'TypeScript', language: 'ts', text: ofClient },
    { label: 'Python', language: 'python', text: toPython(request) },
  ]
}

function toCurl({ method, url, headers, body }: RequestToSample): string {
  const options = [
    `-H "Authorization: Bearer $${KEY}"`,
    ...Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`),
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`]),
  ]
  return [`curl${method === 'GET' ? '' : ` -X ${method}`} '${url}'`, ...options].join(' \\\n  ')
}

function toPython({ method, url, headers, body }: RequestToSample): string {
  const lines = Object.entries(headers).map(([name, value]) => `        "${name}": "${value}",\n`)
  return `import json
import os
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(
    "${url}",
    method="${method}",
    headers={
        "Authorization": f"Bearer {os.environ['${KEY}']}",
${lines.join('')}    },
${body === undefined ? '' : `    data=json.dumps(${indent(toPythonValue(body), 4)}).encode(),\n`})
try:
    with urllib.request.urlopen(request, timeout=40) as response:
        print(response.status, response.read().decode())
except urllib.error.HTTPError as answer:
    error = json.load(answer)["error"]
    sys.exit(f"{answer.code} {error['code']}: {error['message']}")`
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
