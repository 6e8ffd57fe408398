import {
  type Database,
  findWorkflows,
  findWorkflowVersions,
  isStatementError,
  type WorkflowDocument,
  type WorkflowLookUp,
  type WorkflowVersion,
} from '@workflow-service/database'
import { batchCalls, serviceUnavailable } from '@workflow-service/service-kit'
import { LRUCache } from 'lru-cache'

export interface WorkflowDocumentsOptions {
  db: Pick<Database, 'pool'>
  /** Most bytes of all cached documents together. Default 32 MiB. */
  maxBytes?: number
  /** Most bytes of one cached document. Default 256 KiB. */
  maxDocumentBytes?: number
  /** Called with the number of documents that came from memory or from the database. */
  onAnswer?: (from: 'memory' | 'database', count: number) => void
}

/** Reads workflows as documents: the JSON text of a WorkflowOut. */
export interface WorkflowDocuments {
  /** Resolves to null when the organization has no such workflow. */
  find(organizationId: string, workflowId: string): Promise<string | null>
  /** Reads the documents of a page that was just listed, in its order, without workflows deleted since. */
  findListed(organizationId: string, page: readonly WorkflowVersion[]): Promise<string[]>
  /** Bytes of all cached documents. */
  readonly cachedBytes: number
}

interface CachedDocument extends WorkflowDocument {
  readonly organizationId: string
}

const MAX_BYTES = 32 * 1024 * 1024
const MAX_DOCUMENT_BYTES = 256 * 1024
const MAX_VERSIONS_PER_STATEMENT = 100
/** Documents are large and slow to build: with few per statement, no look-up waits long for the others. */
const MAX_DOCUMENTS_PER_STATEMENT = 10
/** Less than the handler's timeout: a look-up that was answered 503 while it was queued is never sent. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Caches documents by their versions, so that PostgreSQL does not build the same one repeatedly. A document is never
 * stale: each request reads the workflow's current version, in a statement that begins after the request arrived, and a
 * cached document is used only if it has that version. Look-ups of concurrent requests share a statement.
 */
export function createWorkflowDocuments(options: WorkflowDocumentsOptions): WorkflowDocuments {
  const { db, maxBytes = MAX_BYTES, maxDocumentBytes = MAX_DOCUMENT_BYTES, onAnswer = () => {} } = options
  const cache = new LRUCache<string, CachedDocument>({
    maxSize: maxBytes,
    maxEntrySize: maxDocumentBytes,
    // V8 stores text with at most two bytes per character.
    sizeCalculation: ({ json }) => 2 * json.length,
  })
  const batchOptions = {
    isItemError: isStatementError,
    queueTimeout: {
      ms: QUEUE_TIMEOUT_MS,
      error: () => serviceUnavailable('The database is too slow at the moment; try again in a moment.'),
    },
  }
  const findVersion = batchCalls(
    lookUpDistinct((lookUps) => findWorkflowVersions(db, lookUps)),
    { ...batchOptions, maxSize: MAX_VERSIONS_PER_STATEMENT, concurrency: 2 },
  )
  const findDocument = batchCalls(
    lookUpDistinct((lookUps) => findWorkflows(db, lookUps)),
    { ...batchOptions, maxSize: MAX_DOCUMENTS_PER_STATEMENT, concurrency: 4 },
  )

  const findCached = (organizationId: string, workflowId: string): CachedDocument | undefined => {
    const document = cache.get(workflowId)
    return document?.organizationId === organizationId ? document : undefined
  }
  const updateCache = (
    organizationId: string,
    workflowId: string,
    document: WorkflowDocument | null,
  ): string | null => {
    if (document) cache.set(workflowId, { organizationId, ...document })
    else cache.delete(workflowId)
    return document && document.json
  }

  return {
    find: async (organizationId, workflowId) => {
      const lookUp = { organizationId, workflowId }
      const cached = findCached(organizationId, workflowId)
      if (cached) {
        const version = await findVersion(lookUp)
        if (version === cached.version) {
          onAnswer('memory', 1)
          return cached.json
        }
        if (version === null) return updateCache(organizationId, workflowId, null)
      }
      onAnswer('database', 1)
      return updateCache(organizationId, workflowId, await findDocument(lookUp))
    },
    findListed: async (organizationId, page) => {
      const documents = page.map(({ id, version }): string | null => {
        const cached = findCached(organizationId, id)
        return cached?.version === version ? cached.json : null
      })
      const missing = page.filter((_workflow, index) => documents[index] === null)
      onAnswer('memory', page.length - missing.length)
      if (missing.length > 0) {
        onAnswer('database', missing.length)
        const lookUps = missing.map(({ id }) => ({ organizationId, workflowId: id }))
        const found = (await findWorkflows(db, lookUps)).values()
        for (const [index, { id }] of page.entries()) {
          if (documents[index] === null) documents[index] = updateCache(organizationId, id, found.next().value ?? null)
        }
      }
      return documents.filter((document) => document !== null)
    },
    get cachedBytes() {
      return cache.calculatedSize
    },
  }
}

/** Makes a batch function that looks each workflow up once, also when several items of the batch name it. */
function lookUpDistinct<Result>(
  lookUp: (lookUps: readonly WorkflowLookUp[]) => Promise<readonly (Result | null)[]>,
): (batch: readonly WorkflowLookUp[]) => Promise<readonly (Result | null)[]> {
  return async (batch) => {
    const distinct = new Map(batch.map((each) => [nameOf(each), each]))
    const results = (await lookUp([...distinct.values()])).values()
    const byName = new Map([...distinct.keys()].map((name) => [name, results.next().value ?? null]))
    return batch.map((each) => byName.get(nameOf(each)) ?? null)
  }
}

function nameOf({ organizationId, workflowId }: WorkflowLookUp): string {
  return `${organizationId} ${workflowId}`
}
