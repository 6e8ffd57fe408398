/**
 * Resolves or rejects as the promise does, or rejects with `makeError()` after `timeoutMs`. The work itself is not
 * stopped; if it rejects later, that is ignored.
 */
export function withTimeout<Result>(
  promise: Promise<Result>,
  timeoutMs: number,
  makeError: () => Error = () => new Error(`Timed out after ${timeoutMs} ms`),
): Promise<Result> {
  const { promise: result, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => reject(makeError()), timeoutMs)
  void promise.then(resolve, reject).finally(() => clearTimeout(timer))
  return result
}
