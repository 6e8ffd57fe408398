import type { PageInfo } from './types.ts'

/** One page of a list. `for await` over it gives its items and those of all following pages. */
export class Page<Item> implements AsyncIterable<Item> {
  readonly data: Item[]
  readonly pagination: PageInfo
  readonly #read: (cursor: string) => Promise<Page<Item>>

  constructor(page: { data: Item[]; pagination: PageInfo }, read: (cursor: string) => Promise<Page<Item>>) {
    this.data = page.data
    this.pagination = page.pagination
    this.#read = read
  }

  hasNextPage(): boolean {
    return this.pagination.next_cursor !== null
  }

  /** Reads the next page. Rejects on the last one. */
  async getNextPage(): Promise<Page<Item>> {
    if (this.pagination.next_cursor === null) throw new RangeError('This is the last page: ask hasNextPage() first.')
    return this.#read(this.pagination.next_cursor)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    yield* this.data
    let page = this.hasNextPage() ? await this.getNextPage() : null
    while (page) {
      yield* page.data
      page = page.hasNextPage() ? await page.getNextPage() : null
    }
  }
}

/** A list under way: `await` gives its first page, `for await` the items of all pages. */
export type PagePromise<Item> = Promise<Page<Item>> & AsyncIterable<Item>

/** Makes the promise of a first page iterable. */
export function toPagePromise<Item>(first: Promise<Page<Item>>): PagePromise<Item> {
  return Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      yield* await first
    },
  })
}
