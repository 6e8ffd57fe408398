import { foldCase } from '../connection/index.ts'

/** Returns a search for the user of an address: exactly this one, or else the first that differs in case only. */
export function findByEmail<User extends { readonly email: string }>(
  users: readonly User[],
): (email: string) => User | undefined {
  const exact = new Map(users.toReversed().map((user) => [user.email, user]))
  const folded = new Map(users.toReversed().map((user) => [foldCase(user.email), user]))
  return (email) => exact.get(email) ?? folded.get(foldCase(email))
}
