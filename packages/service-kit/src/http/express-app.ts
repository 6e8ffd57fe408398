import express, { type Express } from 'express'
import type { TrustProxy } from '../trust-proxy.ts'

/** Creates an application without headers that name the framework or that the contract does not have. */
export function createExpressApp(): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  return app
}

/** Creates the application of a public service, with exact paths. */
export function createPublicApp({ trustProxy }: { readonly trustProxy: TrustProxy }): Express {
  const app = createExpressApp()
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('trust proxy', trustProxy)
  return app
}
