export { AuditPage } from './audit-page.tsx'
export { KeysPage } from './keys-page.tsx'
export { OrganizationPage } from './organization-page.tsx'
export { PeoplePage } from './people-page.tsx'
