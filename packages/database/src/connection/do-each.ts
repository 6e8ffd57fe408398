/**
 * Does the work for each of the ids in turn, until the signal aborts. One that fails does not hold up the others:
 * resolves to the first error, with the id in front, which the caller throws when nothing else is left to do.
 */
export async function doEach<Id extends string>(
  ids: Iterable<Id> | AsyncIterable<Id>,
  work: (id: Id) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<Error | undefined> {
  let failure: Error | undefined
  for await (const id of ids) {
    if (signal?.aborted) break
    try {
      await work(id)
    } catch (error) {
      failure ??= new Error(`${id}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
  return failure
}
