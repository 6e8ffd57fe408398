import type * as jestGlobals from '@jest/globals'

type Globals = Pick<
  typeof jestGlobals,
  'afterAll' | 'afterEach' | 'beforeAll' | 'beforeEach' | 'describe' | 'expect' | 'it' | 'jest' | 'test'
>

// Stands in for `@jest/globals`. Live bindings: helpers such as `use-test-database.ts` are loaded once for all test
// files of a worker, and reach the functions of the file that runs.
export let afterAll: Globals['afterAll']
export let afterEach: Globals['afterEach']
export let beforeAll: Globals['beforeAll']
export let beforeEach: Globals['beforeEach']
export let describe: Globals['describe']
export let expect: Globals['expect']
export let it: Globals['it']
export let jest: Globals['jest']
export let test: Globals['test']

/** Makes the exports those of the test file that is about to run. */
export function setGlobals(globals: Globals): void {
  ;({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test } = globals)
}
