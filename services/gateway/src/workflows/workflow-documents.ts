import {
  type Db,
  findWorkflows,
  findWorkflowVersions,
  isStatementError,
  type OrganizationUsers,
  type WorkflowDocument,
  type WorkflowLookUp,
  type WorkflowVersion,
} from '@workflow-service/database'
import { type ApiError, batchCalls, serviceUnavailable } from '@workflow-service/service-kit'
import { LRUCache } from 'lru-cache'

interface WorkflowDocumentsOptions {
  db: Db
  /** Most bytes of all cached documents together, without the users of `company_wide` ones. */
  maxBytes?: number
  /** Most bytes of all cached users together. */
  maxUsersBytes?: number
  /** Most bytes of one cached document. */
  maxDocumentBytes?: number
  /** Called with the number of documents that came from memory or from the database. */
  onRead?: (from: 'memory' | 'database', count: number) => void
}

/** JSON text in parts, of which several documents share the large ones. */
export type JsonParts = readonly (string | Buffer)[]

/** Joins the parts to JSON text in UTF-8. */
export function joinJson(parts: JsonParts): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
}

interface CachedDocument extends Pick<WorkflowDocument, 'version' | 'start' | 'end'> {
  readonly organizationId: string
  /** Null for a document that does not list all users. */
  readonly usersVersion: string | null
}

const MAX_VERSIONS_PER_STATEMENT = 100
/**
 * Documents are large and slow to build: with few per statement, no look-up waits long for the others, and little is
 * read that a page has no room for.
 */
const MAX_DOCUMENTS_PER_STATEMENT = 10
/** A page's first statement reads few documents: their sizes are not known yet. */
const FIRST_DOCUMENTS_OF_PAGE = 2
/** Less than the handler's timeout: a look-up that was answered 503 while it was queued is never sent. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Caches documents by their versions, so that PostgreSQL does not build the same one repeatedly. A document is never
 * stale: each request reads the workflow's current version, in a statement that begins after the request arrived, and a
 * cached document is used only if it has that version.
 *
 * The users of an organization are cached once for all its `company_wide` workflows: with 4,000 users, they were 300 kB
 * of each.
 */
export function createWorkflowDocuments({ db, onRead = () => {}, ...limits }: WorkflowDocumentsOptions) {
  const cache = createCache(limits)
  const findVersion = batchLookUps((lookUps) => findWorkflowVersions(db, lookUps), {
    maxSize: MAX_VERSIONS_PER_STATEMENT,
    concurrency: 2,
  })
  const findDocument = batchLookUps((lookUps) => findWorkflows(db, lookUps, cache.users), {
    maxSize: MAX_DOCUMENTS_PER_STATEMENT,
    concurrency: 4,
  })

  /** Returns the documents in these versions or later ones; null for a workflow that was deleted since. */
  const read = async (
    organizationId: string,
    listed: readonly WorkflowVersion[],
  ): Promise<readonly (JsonParts | null)[]> => {
    const cached = listed.map(({ id, version }) => cache.find(organizationId, id, version))
    const missing = listed.filter((_workflow, index) => cached[index] === undefined)
    onRead('memory', listed.length - missing.length)
    onRead('database', missing.length)
    const lookUps = missing.map(({ id }) => ({ organizationId, workflowId: id }))
    const found = (lookUps.length === 0 ? [] : await findWorkflows(db, lookUps, cache.users)).values()
    return cached.map((json, index) => {
      if (json) return json
      const document = found.next().value ?? null
      return document && cache.add(organizationId, listed[index]!.id, document)
    })
  }

  return {
    /** Resolves to null when the organization has no such workflow. */
    find: async (organizationId: string, workflowId: string): Promise<JsonParts | null> => {
      const lookUp = { organizationId, workflowId }
      const version = await findVersion(lookUp)
      if (version === null) return null
      const cached = cache.find(organizationId, workflowId, version)
      onRead(cached ? 'memory' : 'database', 1)
      if (cached) return cached
      const document = await findDocument(lookUp)
      return document && cache.add(organizationId, workflowId, document)
    },
    /**
     * Reads the documents of a page that was just listed, in its order, until they would take more than `maxBytes`
     * together; reads at least one. Each statement reads as many as all before it: at most about twice as much as the
     * page has room for.
     */
    findListed: async (organizationId: string, page: readonly WorkflowVersion[], maxBytes: number) => {
      const startedMs = performance.now()
      /** Without workflows deleted since they were listed. */
      const documents: JsonParts[] = []
      /** How many workflows of the page were read, deleted ones included. */
      let count = 0
      let bytes = 0
      while (count < page.length) {
        if (performance.now() - startedMs > QUEUE_TIMEOUT_MS) throw databaseTooSlow()
        const size = Math.min(MAX_DOCUMENTS_PER_STATEMENT, Math.max(FIRST_DOCUMENTS_OF_PAGE, count))
        for (const document of await read(organizationId, page.slice(count, count + size))) {
          bytes += countBytes(document ?? [])
          if (documents.length > 0 && bytes > maxBytes) return { documents, count }
          if (document !== null) documents.push(document)
          count += 1
        }
      }
      return { documents, count }
    },
  }
}

/** Caches documents by workflow. */
function createCache({
  maxBytes = 32 * 1024 * 1024,
  maxUsersBytes = 16 * 1024 * 1024,
  maxDocumentBytes = 256 * 1024,
}: Pick<WorkflowDocumentsOptions, 'maxBytes' | 'maxUsersBytes' | 'maxDocumentBytes'>) {
  /** The users that the documents of an organization share. */
  const users = new LRUCache<string, OrganizationUsers>({
    maxSize: maxUsersBytes,
    sizeCalculation: ({ json }) => json.length,
  })
  const documents = new LRUCache<string, CachedDocument>({
    maxSize: maxBytes,
    maxEntrySize: maxDocumentBytes,
    // V8 stores text with at most two bytes per character.
    sizeCalculation: ({ start, end }) => 2 * (start.length + end.length),
  })

  /** Undefined also for a document whose users are no longer cached. */
  const find = (organizationId: string, workflowId: string, version: string): JsonParts | undefined => {
    const document = documents.get(workflowId)
    if (document?.organizationId !== organizationId || document.version !== version) return undefined
    const { start, usersVersion, end } = document
    if (usersVersion === null) return [start, end]
    const listed = users.get(organizationId)
    return listed?.version === usersVersion ? [start, listed.json, end] : undefined
  }
  const add = (organizationId: string, workflowId: string, document: WorkflowDocument): JsonParts => {
    const { version, start, users: listed, end } = document
    documents.set(workflowId, { organizationId, version, start, usersVersion: listed?.version ?? null, end })
    if (listed === null) return [start, end]
    users.set(organizationId, listed)
    return [start, listed.json, end]
  }
  return { users, find, add }
}

function countBytes(parts: JsonParts): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
}

function databaseTooSlow(): ApiError {
  return serviceUnavailable('The database is too slow at the moment; try again in a moment.')
}

/** Creates a look-up that shares a statement with those of concurrent requests, and a row of it with equal ones. */
function batchLookUps<Result>(
  lookUp: (lookUps: readonly WorkflowLookUp[]) => Promise<readonly (Result | null)[]>,
  limits: { readonly maxSize: number; readonly concurrency: number },
): (lookUp: WorkflowLookUp) => Promise<Result | null> {
  return batchCalls(
    async (batch: readonly WorkflowLookUp[]) => {
      const distinct = new Map(batch.map((each) => [nameOf(each), each]))
      const results = (await lookUp([...distinct.values()])).values()
      const byName = new Map([...distinct.keys()].map((name) => [name, results.next().value ?? null]))
      return batch.map((each) => byName.get(nameOf(each)) ?? null)
    },
    { ...limits, isItemError: isStatementError, queueTimeout: { ms: QUEUE_TIMEOUT_MS, error: databaseTooSlow } },
  )
}

function nameOf({ organizationId, workflowId }: WorkflowLookUp): string {
  return `${organizationId} ${workflowId}`
}
