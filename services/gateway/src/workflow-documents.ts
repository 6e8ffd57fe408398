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
  /** Bytes of all kept documents together at most. Default 32 MiB. */
  maxBytes?: number
  /** Bytes of a document that is kept at most. Default 256 KiB. */
  maxDocumentBytes?: number
  /** Told how many documents were answered, and whether they had to be read. */
  onAnswer?: (from: 'memory' | 'database', count: number) => void
}

/** The documents (WorkflowOut as JSON text) of workflows: what is answered is what Postgres held after it was asked for. */
export interface WorkflowDocuments {
  /** Null when the organization has no such workflow. */
  find(organizationId: string, workflowId: string): Promise<string | null>
  /** Those of a page that was listed just now, in its order; a workflow that is gone since is left out. */
  findListed(organizationId: string, page: readonly WorkflowVersion[]): Promise<string[]>
  /** Bytes kept at the moment. */
  readonly keptBytes: number
}

interface Kept extends WorkflowDocument {
  readonly organizationId: string
}

const MAX_BYTES = 32 * 1024 * 1024
const MAX_DOCUMENT_BYTES = 256 * 1024
const MAX_VERSIONS_PER_STATEMENT = 100
/** Few, since they are large and take a while: no look-up waits long for the others of its statement. */
const MAX_DOCUMENTS_PER_STATEMENT = 10
/** Less than the handler's deadline: what was answered 503 while the database did not answer is not asked later on. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Keeps documents together with their versions, so that Postgres does not put the same one together again and again. No
 * document is ever stale: every request asks Postgres for the current version, in a statement that begins after the
 * request came, and a kept document is answered only when its version is that one. Look-ups of requests in flight are
 * grouped into one statement, and the same workflow is looked up once in it.
 */
export function createWorkflowDocuments(options: WorkflowDocumentsOptions): WorkflowDocuments {
  const { db, maxBytes = MAX_BYTES, maxDocumentBytes = MAX_DOCUMENT_BYTES, onAnswer = () => {} } = options
  const kept = new LRUCache<string, Kept>({
    maxSize: maxBytes,
    maxEntrySize: maxDocumentBytes,
    // As V8 keeps a text at most.
    sizeCalculation: ({ json }) => 2 * json.length,
  })
  const queueTimeout = {
    ms: QUEUE_TIMEOUT_MS,
    error: () => serviceUnavailable('The database is too slow at the moment; try again in a moment.'),
  }
  const findVersion = batchCalls(
    lookUpOnce((asked) => findWorkflowVersions(db, asked)),
    { maxSize: MAX_VERSIONS_PER_STATEMENT, concurrency: 2, isItemError: isStatementError, queueTimeout },
  )
  const findDocument = batchCalls(
    lookUpOnce((asked) => findWorkflows(db, asked)),
    { maxSize: MAX_DOCUMENTS_PER_STATEMENT, concurrency: 4, isItemError: isStatementError, queueTimeout },
  )

  const keptOf = (organizationId: string, workflowId: string): Kept | undefined => {
    const document = kept.get(workflowId)
    return document?.organizationId === organizationId ? document : undefined
  }
  const keep = (organizationId: string, workflowId: string, document: WorkflowDocument | null): string | null => {
    if (document) kept.set(workflowId, { organizationId, ...document })
    else kept.delete(workflowId)
    return document && document.json
  }

  return {
    find: async (organizationId, workflowId) => {
      const asked = { organizationId, workflowId }
      const known = keptOf(organizationId, workflowId)
      if (known) {
        const version = await findVersion(asked)
        if (version === known.version) {
          onAnswer('memory', 1)
          return known.json
        }
        if (version === null) return keep(organizationId, workflowId, null)
      }
      onAnswer('database', 1)
      return keep(organizationId, workflowId, await findDocument(asked))
    },
    findListed: async (organizationId, page) => {
      const documents = page.map(({ id, version }): string | null => {
        const known = keptOf(organizationId, id)
        return known?.version === version ? known.json : null
      })
      const unknown = page.filter((_workflow, index) => documents[index] === null)
      onAnswer('memory', page.length - unknown.length)
      if (unknown.length > 0) {
        onAnswer('database', unknown.length)
        const asked = unknown.map(({ id }) => ({ organizationId, workflowId: id }))
        const found = (await findWorkflows(db, asked)).values()
        for (const [index, { id }] of page.entries()) {
          if (documents[index] === null) documents[index] = keep(organizationId, id, found.next().value ?? null)
        }
      }
      return documents.filter((document) => document !== null)
    },
    get keptBytes() {
      return kept.calculatedSize
    },
  }
}

/** Looks up each workflow once, however many ask for it. */
function lookUpOnce<Result>(
  lookUp: (asked: readonly WorkflowLookUp[]) => Promise<readonly (Result | null)[]>,
): (batch: readonly WorkflowLookUp[]) => Promise<readonly (Result | null)[]> {
  return async (batch) => {
    const places = new Map<string, number>()
    const asked: WorkflowLookUp[] = []
    const placeOf = batch.map(({ organizationId, workflowId }): number => {
      const key = `${organizationId} ${workflowId}`
      const place = places.get(key) ?? asked.push({ organizationId, workflowId }) - 1
      places.set(key, place)
      return place
    })
    const found = await lookUp(asked)
    return placeOf.map((place) => found[place] ?? null)
  }
}
