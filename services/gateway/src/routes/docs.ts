import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { describePublicApi } from '@workflow-service/contract'
import { SECURITY_HEADERS, serveOpenApi } from '@workflow-service/service-kit'
import type { GatewayConfig } from '../config.ts'
import express, { type RequestHandler, type Response, Router } from 'express'

const swaggerUi = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
const ASSETS = new Set(['/swagger-ui.css', '/swagger-ui-bundle.js', '/favicon-32x32.png'])

// The page loads and sends nothing beyond its own origin and cannot be framed. Swagger UI sets styles on its elements.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

// URLs are relative, so that the page also works behind a proxy that adds a path prefix.
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Workflow Automation Service: API reference</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The description as data: <a href="v1/openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

const START_SCRIPT = `SwaggerUIBundle({
  url: 'v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  supportedSubmitMethods: ['get', 'post'],
  validatorUrl: null,
})
`

/**
 * Creates `GET /v1/openapi.json` and the reference page at `/docs`, which need no key. They never answer 206, 304 or a
 * redirect: the contract has no such statuses.
 */
export function docsRoutes({ apiUrl }: Pick<GatewayConfig, 'apiUrl'>): RequestHandler {
  const router = Router({ caseSensitive: true, strict: true })
  router.get('/v1/openapi.json', serveOpenApi(describePublicApi, apiUrl))
  router.get('/docs', answerWith('text/html; charset=utf-8', PAGE))
  router.get('/docs/start.js', answerWith('text/javascript; charset=utf-8', START_SCRIPT))
  const readAsset = express.static(swaggerUi, {
    index: false,
    redirect: false,
    etag: false,
    lastModified: false,
    acceptRanges: false,
    cacheControl: false,
  })
  router.use('/docs', (req, res, next) => {
    if (!ASSETS.has(req.path)) {
      next()
      return
    }
    setPageHeaders(res)
    readAsset(req, res, next)
  })
  // Keeps other requests from being matched against each route.
  return (req, res, next) => {
    if (req.url.startsWith('/docs') || req.url.startsWith('/v1/openapi.json')) router(req, res, next)
    else next()
  }
}

function answerWith(type: string, body: string): RequestHandler {
  return (_req, res) => {
    setPageHeaders(res)
    res.type(type).send(body)
  }
}

function setPageHeaders(res: Response): void {
  res.set({
    ...SECURITY_HEADERS,
    'Content-Security-Policy': PAGE_POLICY,
    'Cache-Control': 'public, max-age=300',
    'X-Request-Id': String(res.locals['requestId']),
  })
}
