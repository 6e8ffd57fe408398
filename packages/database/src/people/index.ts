/** Users and their accounts, sign-ins and one-time links. */
export * from './accounts.ts'
export * from './one-time-links.ts'
export * from './sign-ins.ts'
export * from './users.ts'
