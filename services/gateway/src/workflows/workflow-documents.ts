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
  onAnswer?: (from: 'memory' | 'database', count: number) => void
}

/** JSON text in parts, of which several documents share the large ones. */
export type JsonParts = readonly (string | Buffer)[]

/** Joins the parts to JSON text in UTF-8. Each part is copied once, so a page of 2 MiB takes about 1 ms. */
export function joinJson(parts: JsonParts): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
}

interface CachedDocument extends Pick<WorkflowDocument, 'version' | 'start' | 'end'> {
  readonly organizationId: string
  /** Null for a document that does not list all users. */
  readonly usersVersion: string | null
}

const MAX_VERSIONS_PER_STATEMENT = 100
/** Documents are large and slow to build: with few per statement, no look-up waits long for the others. */
const MAX_DOCUMENTS_PER_STATEMENT = 10
/** A page's first statement reads few documents: their sizes are not known yet. */
const FIRST_DOCUMENTS_OF_PAGE = 2
/** Less than the handler's timeout: a look-up that was answered 503 while it was queued is never sent. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Caches documents by their versions, so that PostgreSQL does not build the same one repeatedly. A document is never
 * stale: each request reads the workflow's current version, in a statement that begins after the request arrived, and a
 * cached document is used only if it has that version. Look-ups of concurrent requests share a statement.
 *
 * The users of an organization are cached once for all its `company_wide` workflows: with 4,000 users, they were 300 kB
 * of each.
 */
export function createWorkflowDocuments({ db, onAnswer = () => {}, ...limits }: WorkflowDocumentsOptions) {
  const cache = createCache(limits)
  const { users } = cache
  const batchOptions = {
    isItemError: isStatementError,
    queueTimeout: { ms: QUEUE_TIMEOUT_MS, error: databaseTooSlow },
  }
  const findVersion = batchCalls(
    lookUpDistinct((lookUps) => findWorkflowVersions(db, lookUps)),
    { ...batchOptions, maxSize: MAX_VERSIONS_PER_STATEMENT, concurrency: 2 },
  )
  const findDocument = batchCalls(
    lookUpDistinct((lookUps) => findWorkflows(db, lookUps, users)),
    { ...batchOptions, maxSize: MAX_DOCUMENTS_PER_STATEMENT, concurrency: 4 },
  )

  /**
   * Returns the first workflows of the list, of which it reads at most `maxReads` from the database; null for a deleted
   * one.
   */
  const findGroup = async (
    organizationId: string,
    listed: readonly WorkflowVersion[],
    maxReads: number,
  ): Promise<readonly (JsonParts | null)[]> => {
    const cached: (JsonParts | null)[] = []
    const missing: WorkflowVersion[] = []
    for (const workflow of listed) {
      const document = cache.find(organizationId, workflow.id)
      const json = document?.version === workflow.version ? document.json : null
      if (json === null && missing.length === maxReads) break
      if (json === null) missing.push(workflow)
      cached.push(json)
    }
    onAnswer('memory', cached.length - missing.length)
    if (missing.length === 0) return cached
    onAnswer('database', missing.length)
    const lookUps = missing.map(({ id }) => ({ organizationId, workflowId: id }))
    const found = (await findWorkflows(db, lookUps, users)).values()
    return cached.map((json, index) => {
      if (json !== null) return json
      return cache.update(organizationId, listed[index]!.id, found.next().value ?? null)
    })
  }

  return {
    /** Resolves to null when the organization has no such workflow. */
    find: async (organizationId: string, workflowId: string) => {
      const lookUp = { organizationId, workflowId }
      const cached = cache.find(organizationId, workflowId)
      if (cached) {
        const version = await findVersion(lookUp)
        if (version === cached.version) {
          onAnswer('memory', 1)
          return cached.json
        }
        if (version === null) return cache.update(organizationId, workflowId, null)
      }
      onAnswer('database', 1)
      return cache.update(organizationId, workflowId, await findDocument(lookUp))
    },
    /**
     * Reads the documents of a page that was just listed, in its order, until they would take more than `maxBytes`
     * together; reads at least one.
     */
    findListed: (organizationId: string, page: readonly WorkflowVersion[], pageMaxBytes: number) =>
      readPage(page, pageMaxBytes, (rest, maxReads) => findGroup(organizationId, rest, maxReads)),
    /** Bytes of all cached documents, without shared users. */
    get cachedBytes() {
      return cache.bytes()
    },
  }
}

/** Reads a page group by group, each of as many workflows as may fit. */
async function readPage(
  page: readonly WorkflowVersion[],
  pageMaxBytes: number,
  readGroup: (rest: readonly WorkflowVersion[], maxReads: number) => Promise<readonly (JsonParts | null)[]>,
) {
  const startedMs = performance.now()
  const documents: JsonParts[] = []
  let [count, bytes] = [0, 0]
  let maxReads = FIRST_DOCUMENTS_OF_PAGE
  while (count < page.length && bytes < pageMaxBytes) {
    if (performance.now() - startedMs > QUEUE_TIMEOUT_MS) throw databaseTooSlow()
    for (const document of await readGroup(page.slice(count), maxReads)) {
      const size = document === null ? 0 : countBytes(document)
      if (documents.length > 0 && bytes + size > pageMaxBytes) return { documents, count }
      if (document !== null) documents.push(document)
      bytes += size
      count += 1
    }
    // As many as fit if they are as large as those so far.
    const meanBytes = bytes / Math.max(1, documents.length)
    const fitting = Math.floor((pageMaxBytes - bytes) / Math.max(1, meanBytes))
    maxReads = Math.max(1, Math.min(MAX_DOCUMENTS_PER_STATEMENT, fitting))
  }
  return {
    /** Without workflows deleted since they were listed. */
    documents,
    /** How many workflows of the page were read, deleted ones included. */
    count,
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
  const find = (organizationId: string, workflowId: string): { version: string; json: JsonParts } | undefined => {
    const document = documents.get(workflowId)
    if (document?.organizationId !== organizationId) return undefined
    const { version, start, usersVersion, end } = document
    if (usersVersion === null) return { version, json: [start, end] }
    const listed = users.get(organizationId)
    return listed?.version === usersVersion ? { version, json: [start, listed.json, end] } : undefined
  }
  /** Caches what was read, null for a deleted workflow. */
  const update = (organizationId: string, workflowId: string, document: WorkflowDocument | null): JsonParts | null => {
    if (document === null) {
      documents.delete(workflowId)
      return null
    }
    const { version, start, users: listed, end } = document
    documents.set(workflowId, { organizationId, version, start, usersVersion: listed?.version ?? null, end })
    if (listed === null) return [start, end]
    users.set(organizationId, listed)
    return [start, listed.json, end]
  }
  return { users, find, update, bytes: () => documents.calculatedSize }
}

function countBytes(parts: JsonParts): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
}

function databaseTooSlow(): ApiError {
  return serviceUnavailable('The database is too slow at the moment; try again in a moment.')
}

/** Creates a batch function that looks each workflow up once, also when several items of the batch name it. */
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
