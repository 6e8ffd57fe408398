import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { findBlockingOperations } from './support/blocking-operations.ts'

const folder = new URL('../migrations/', import.meta.url)
/** Before the first release that others upgraded from, services were stopped for an upgrade. */
const LAST_WITH_DOWNTIME = '010'

describe('migrations', () => {
  test.each(readdirSync(folder).filter((name) => name.slice(0, 3) > LAST_WITH_DOWNTIME))(
    '%s only extends the schema, and makes no statement wait',
    (name) => {
      expect(findBlockingOperations(readFileSync(new URL(name, folder), 'utf8'))).toEqual([])
    },
  )
})

describe('blocking operations', () => {
  test.each([
    'ALTER TABLE starts RENAME COLUMN context TO text;',
    'ALTER TABLE starts DROP COLUMN context;',
    'DROP TABLE starts;',
    'ALTER TABLE starts ALTER COLUMN number TYPE bigint;',
    'ALTER TABLE starts ALTER context SET NOT NULL;',
    'ALTER TABLE starts ADD COLUMN a text, ADD COLUMN b text NOT NULL;',
    'ALTER TABLE starts ADD b integer NOT NULL CHECK (b > 0);',
    'ALTER TABLE starts ADD COLUMN b uuid NOT NULL DEFAULT gen_random_uuid();',
    'ALTER TABLE starts ADD CONSTRAINT c CHECK (number > 0);',
    'ALTER TABLE starts ADD FOREIGN KEY (a) REFERENCES b;',
    'ALTER TABLE starts ADD UNIQUE (number);',
    'CREATE INDEX i ON starts (number);',
    'CREATE TABLE a (b text); UPDATE starts SET number = 1;',
    'DELETE FROM starts;',
    'LOCK TABLE starts;',
  ])('are found in: %s', (sql) => {
    expect(findBlockingOperations(sql)).toHaveLength(1)
  })

  test.each([
    'ALTER TABLE starts ADD COLUMN a text, ADD COLUMN b boolean NOT NULL DEFAULT false;',
    'ALTER TABLE starts ADD COLUMN at timestamptz NOT NULL DEFAULT now();',
    'ALTER TABLE starts ADD CONSTRAINT c CHECK (number > 0) NOT VALID;',
    'CREATE TABLE a (b text NOT NULL); CREATE INDEX c ON a (b); UPDATE a SET b = 1;',
    'CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DELETE FROM starts; $$;',
    '-- safe: the table has a row for each organization\nCREATE INDEX i ON organizations (name);',
    '-- It would DROP COLUMN a.\nALTER TABLE starts ADD COLUMN a text;',
  ])('are not found in: %s', (sql) => {
    expect(findBlockingOperations(sql)).toEqual([])
  })
})
