import type { LinkProps } from '@tanstack/react-router'
import type { IconName } from '../components/icons.tsx'

export interface PageEntry {
  to: NonNullable<LinkProps['to']>
  label: string
  icon: IconName
  /** The second key after `g`. */
  shortcut: string
  isForAdmins?: boolean
}

/** The pages of the navigation in their groups, also found by the command menu. */
export const PAGES: readonly (readonly [group: string, entries: readonly PageEntry[]])[] = [
  [
    'Observe',
    [
      { to: '/', label: 'Overview', icon: 'overview', shortcut: 'o' },
      { to: '/runs', label: 'Runs', icon: 'run', shortcut: 'r' },
      { to: '/approvals', label: 'Approvals', icon: 'check', shortcut: 'a' },
      { to: '/deliveries', label: 'Deliveries', icon: 'send', shortcut: 'd' },
      { to: '/sessions', label: 'Sessions', icon: 'session', shortcut: 'e' },
      { to: '/usage', label: 'Usage', icon: 'usage', shortcut: 'u' },
    ],
  ],
  [
    'Build',
    [
      { to: '/workflows', label: 'Workflows', icon: 'workflow', shortcut: 'w' },
      { to: '/sources', label: 'Webhook sources', icon: 'source', shortcut: 's' },
      { to: '/lookups', label: 'Look-ups', icon: 'search', shortcut: 'f' },
      { to: '/agents', label: 'Agents', icon: 'agent', shortcut: 'g' },
    ],
  ],
  [
    'Administer',
    [
      { to: '/keys', label: 'API keys', icon: 'key', shortcut: 'k', isForAdmins: true },
      { to: '/people', label: 'People', icon: 'people', shortcut: 'p' },
      { to: '/audit', label: 'Audit log', icon: 'audit', shortcut: 'l', isForAdmins: true },
      { to: '/organization', label: 'Organization', icon: 'organization', shortcut: 'i' },
    ],
  ],
]
