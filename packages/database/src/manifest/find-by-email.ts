/** Folds ASCII letters, as the unique index of users does: see migration 014. */
export function emailKey(email: string): string {
  return email.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** Returns a search for the user of an address: exactly this one, or else the first that differs in case only. */
export function findByEmail<User extends { readonly email: string }>(
  users: readonly User[],
): (email: string) => User | undefined {
  const exact = new Map(users.toReversed().map((user) => [user.email, user]))
  const folded = new Map(users.toReversed().map((user) => [emailKey(user.email), user]))
  return (email) => exact.get(email) ?? folded.get(emailKey(email))
}
