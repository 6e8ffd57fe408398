import type { LinkProps } from '@tanstack/react-router'
import type { IconName } from '../components/icons.tsx'

export interface PageEntry {
  to: NonNullable<LinkProps['to']>
  label: string
  icon: IconName
  isForAdmins?: boolean
}

/** The pages of the navigation in their groups, also found by the command menu. */
export const PAGES: readonly (readonly [group: string, entries: readonly PageEntry[]])[] = [
  [
    'Observe',
    [
      { to: '/', label: 'Overview', icon: 'overview' },
      { to: '/runs', label: 'Runs', icon: 'run' },
      { to: '/approvals', label: 'Approvals', icon: 'check' },
      { to: '/deliveries', label: 'Deliveries', icon: 'send' },
      { to: '/sessions', label: 'Sessions', icon: 'session' },
      { to: '/usage', label: 'Usage', icon: 'usage' },
    ],
  ],
  [
    'Build',
    [
      { to: '/workflows', label: 'Workflows', icon: 'workflow' },
      { to: '/sources', label: 'Webhook sources', icon: 'source' },
      { to: '/lookups', label: 'Look-ups', icon: 'search' },
      { to: '/agents', label: 'Agents', icon: 'agent' },
    ],
  ],
  [
    'Administer',
    [
      { to: '/keys', label: 'API keys', icon: 'key', isForAdmins: true },
      { to: '/people', label: 'People', icon: 'people' },
      { to: '/audit', label: 'Audit log', icon: 'audit', isForAdmins: true },
      { to: '/organization', label: 'Organization', icon: 'organization' },
    ],
  ],
]
