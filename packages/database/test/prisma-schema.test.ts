/**
 * Compares prisma/schema.prisma with the migrated database. The generated client keeps neither native types nor what is
 * optional, and Prisma's own schema parser would be a download, so the schema's lines are read here: they are regular.
 */
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'

interface PrismaModel {
  table: string
  /** Column → what it is, such as `timestamptz(3) null default`. */
  columns: Record<string, string>
  /** Each the sorted columns of an `@id`, `@@id`, `@unique` or `@@unique`. */
  keys: string[]
}

const schemaFile = new URL('../prisma/schema.prisma', import.meta.url)

const database = useTestDatabase()
let models: PrismaModel[]

beforeAll(async () => {
  models = readModels(await readFile(schemaFile, 'utf8'))
})

function readModels(schema: string): PrismaModel[] {
  const blocks = [...schema.matchAll(/^model (\w+) \{\n([\s\S]*?)^\}/gm)]
  const modelNames = new Set(blocks.map(([, name]) => name))
  return blocks.map(([, , body = '']) => {
    const model: PrismaModel = { table: /@@map\("(\w+)"\)/.exec(body)?.[1] ?? 'not mapped', columns: {}, keys: [] }
    const columnOf = new Map<string, string>()
    for (const [, name = '', type = '', mark, attributes = ''] of body.matchAll(FIELD)) {
      if (modelNames.has(type)) continue
      const column = /@map\("(\w+)"\)/.exec(attributes)?.[1] ?? name
      columnOf.set(name, column)
      const native = /@db\.(\w+(?:\(\d+\))?)/.exec(attributes)?.[1]?.toLowerCase()
      const base = native ?? defaultTypes[type] ?? `unknown type ${type}`
      const isList = mark === '[]'
      model.columns[column] = inWords(isList ? `${base}[]` : base, mark === '?', attributes.includes('@default('))
      if (/@(id|unique)\b/.test(attributes)) model.keys.push(column)
    }
    for (const [, names = ''] of body.matchAll(/^ *@@(?:id|unique)\(\[([^\]]+)\]/gm)) {
      model.keys.push(keyOf(names.split(',').map((name) => columnOf.get(name.trim()) ?? `no field ${name}`)))
    }
    return { ...model, keys: model.keys.toSorted() }
  })
}

const FIELD = /^ +(\w+) +(\w+)(\[\]|\?)?(?: +(.*))?$/gm

/** Prisma's types without `@db.…`, as its documentation of the PostgreSQL connector maps them. */
const defaultTypes: Record<string, string> = {
  String: 'text',
  Boolean: 'bool',
  Int: 'int4',
  BigInt: 'int8',
  Float: 'float8',
  DateTime: 'timestamp(3)',
  Json: 'jsonb',
  Bytes: 'bytea',
}

function inWords(type: string, isNullable: boolean, hasDefault: boolean): string {
  return [type, ...(isNullable ? ['null'] : []), ...(hasDefault ? ['default'] : [])].join(' ')
}

function keyOf(columns: readonly string[]): string {
  return columns.toSorted().join(', ')
}

async function columnsInDatabase(): Promise<Record<string, PrismaModel['columns']>> {
  const found = await database.db.pool.query<{
    table_name: string
    column_name: string
    udt_name: string
    datetime_precision: number | null
    is_nullable: string
    column_default: string | null
  }>(
    `SELECT table_name, column_name, udt_name, datetime_precision, is_nullable, column_default
     FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ANY ($1)`,
    [models.map(({ table }) => table)],
  )
  const columns: Record<string, PrismaModel['columns']> = {}
  for (const row of found.rows) {
    const type = row.udt_name.replace(/^_(.*)$/, '$1[]')
    const precision = row.datetime_precision === null || row.udt_name === 'date' ? '' : `(${row.datetime_precision})`
    const isKnown = models.some(({ table, columns: known }) => table === row.table_name && row.column_name in known)
    const [isNullable, hasDefault] = [row.is_nullable === 'YES', row.column_default !== null]
    // A row that Prisma inserts can be without the others.
    if (!isKnown && (isNullable || hasDefault)) continue
    const table = (columns[row.table_name] ??= {})
    table[row.column_name] = inWords(type + precision, isNullable, hasDefault)
  }
  return columns
}

/** The unconditional unique indexes of each table; those of expressions have no columns to name. */
async function keysInDatabase(): Promise<Record<string, string[]>> {
  const found = await database.db.pool.query<{ table_name: string; columns: string[] }>(
    `SELECT c.relname AS table_name, array_agg(a.attname::text) AS columns
     FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
     WHERE i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND c.relnamespace = 'public'::regnamespace
       AND c.relname = ANY ($1)
     GROUP BY i.indexrelid, c.relname`,
    [models.map(({ table }) => table)],
  )
  const keys: Record<string, string[]> = {}
  for (const row of found.rows) (keys[row.table_name] ??= []).push(keyOf(row.columns))
  return Object.fromEntries(Object.entries(keys).map(([table, list]) => [table, list.toSorted()]))
}

test('no index of starts has a column that the beginning or the end of each run changes, also not in its condition', async () => {
  const { rows } = await database.db.pool.query(
    `SELECT indexname FROM pg_indexes
     WHERE tablename = 'starts' AND indexdef ~ '\\m(status|attempts|started_at|finished_at)\\M'`,
  )
  expect(rows).toEqual([])
})

describe('the Prisma schema', () => {
  test('has columns of the migrated database with their types, nulls and defaults, and all that a row must have', async () => {
    expect(await columnsInDatabase()).toEqual(Object.fromEntries(models.map(({ table, columns }) => [table, columns])))
  })

  test('has the primary and unique keys of its tables in the migrated database, and no others', async () => {
    expect(await keysInDatabase()).toEqual(Object.fromEntries(models.map(({ table, keys }) => [table, keys])))
  })
})
