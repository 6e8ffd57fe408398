import { describePublicApi } from '@workflow-service/contract'
import { serveReference } from '@workflow-service/reference'
import { serveOpenApi } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'
import type { GatewayConfig } from '../config.ts'
import { createPublicReference } from '../docs/public-reference.ts'

const DOCUMENT_PATH = '/v1/openapi.json'

/**
 * Creates the handler of `/v1/openapi.json` and of the reference page at `/docs`, which need no key. `/` and `/docs/`
 * answer the page to browsers; to other callers they are unknown paths, as the contract has it.
 */
export function serveDocs({ apiUrl }: Pick<GatewayConfig, 'apiUrl'>): RequestHandler {
  const sendDocument = serveOpenApi(describePublicApi, apiUrl)
  const sendPage = serveReference(() => createPublicReference(apiUrl))
  return (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    // Returned: Express answers a handler that rejects, which would otherwise end the process.
    return isRead && req.path === DOCUMENT_PATH ? sendDocument(req, res, next) : sendPage(req, res, next)
  }
}
