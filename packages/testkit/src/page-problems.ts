import type { BrowserContext } from './launch-chromium.ts'

/** Chromium reports each answer from 400 on as a console error. The pages under test handle those from 400 to 499. */
const EXPECTED_ANSWER = /^Failed to load resource: the server responded with a status of 4\d\d /

/**
 * Collects what goes wrong in the pages of a context: exceptions that a page does not catch, console errors (which
 * include every report of the Content Security Policy), and requests to another host than loopback.
 */
export function collectProblems(context: BrowserContext): string[] {
  const problems: string[] = []
  context.on('weberror', (error) => problems.push(`Page error: ${error.error().stack ?? String(error.error())}`))
  context.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED_ANSWER.test(message.text())) problems.push(message.text())
  })
  context.on('request', (request) => {
    if (!isLocal(request.url())) problems.push(`Request to another host: ${request.url()}`)
  })
  return problems
}

function isLocal(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return !protocol.startsWith('http') || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
}
