/** Users and their accounts, sign-ins and one-time links. */
export {
  type Account,
  changePassword,
  findAccountByEmail,
  findAccountById,
  findAccountByOidc,
  findAccountByUser,
  hasAccounts,
  type Membership,
  recordFailedSignIn,
  saveAccount,
  signIn,
} from './accounts.ts'
export * from './one-time-links.ts'
export {
  confirmSignIn,
  createSignIn,
  deleteEndedSignIns,
  endSignIn,
  findOpenSignIns,
  findSignedInUser,
  hashToken,
  listSignIns,
  type NewSignIn,
  SIGN_IN_MAX_DAYS,
  type SignedInUser,
  switchOrganization,
} from './sign-ins.ts'
export {
  type CheckUserChange,
  createUser,
  createUserLink,
  deleteUser,
  findUserByEmail,
  findUserById,
  LINK_HOURS,
  listDuplicateUsers,
  listUsers,
  type NewUserLink,
  saveUser,
  signUserOut,
} from './users.ts'
