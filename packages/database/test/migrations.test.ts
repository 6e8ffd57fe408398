import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { findBlockingOperations } from './support/blocking-operations.ts'

const folder = new URL('../migrations/', import.meta.url)
/** Before the first release that others upgraded from, services were stopped for an upgrade. */
const LAST_WITH_DOWNTIME = '010'

test.each(readdirSync(folder).filter((name) => name.slice(0, 3) > LAST_WITH_DOWNTIME))(
  'the migration %s only extends the schema, and makes no statement wait',
  (name) => {
    expect(findBlockingOperations(readFileSync(new URL(name, folder), 'utf8'))).toEqual([])
  },
)

test.each([
  ['ALTER TABLE starts DROP COLUMN context;', 1],
  ['ALTER TABLE starts ALTER context SET NOT NULL;', 1],
  ['ALTER TABLE starts ADD COLUMN a text, ADD COLUMN b text NOT NULL;', 1],
  ['ALTER TABLE starts ADD CONSTRAINT c CHECK (number > 0);', 1],
  ['CREATE INDEX i ON starts (number);', 1],
  ['CREATE TABLE a (b text); UPDATE starts SET number = 1;', 1],
  ['ALTER TABLE starts ADD COLUMN at timestamptz NOT NULL DEFAULT now();', 0],
  ['ALTER TABLE starts ADD CONSTRAINT c CHECK (number > 0) NOT VALID;', 0],
  ['CREATE TABLE a (b text NOT NULL); CREATE INDEX c ON a (b); UPDATE a SET b = 1;', 0],
  ['-- safe: the table has a row for each organization\nCREATE INDEX i ON organizations (name);', 0],
])('%s has so many blocking operations: %i', (sql, count) => {
  expect(findBlockingOperations(sql)).toHaveLength(count)
})
