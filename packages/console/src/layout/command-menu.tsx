import { useQuery, keepPreviousData } from '@tanstack/react-query'
import { type LinkProps, useNavigate } from '@tanstack/react-router'
import type { AppAnswer } from '@workflow-service/contract'
import { useDeferredValue, useState } from 'react'
import { read, useMe } from '../api/queries.ts'
import { Dialog } from '../components/dialog.tsx'
import { Icon, type IconName } from '../components/icons.tsx'
import { pagesFor } from './app-layout.tsx'
import { linkTo } from './link-to.ts'

type Found = AppAnswer<'search'>['data'][number]

const KINDS: Record<Found['kind'], readonly [IconName, string]> = {
  workflow: ['workflow', 'Workflow'],
  webhook_source: ['source', 'Webhook source'],
  run: ['run', 'Run'],
  session: ['session', 'Session'],
  delivery: ['send', 'Delivery'],
  user: ['people', 'Person'],
  api_key: ['key', 'API key'],
}

interface Choice {
  key: string
  icon: IconName
  title: string
  detail: string
  link: LinkProps
}

/** Finds pages by name, and everything else by name, id or request id. */
export default function CommandMenu({ onClose }: { onClose: () => void }) {
  const me = useMe()
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const [active, setActive] = useState(0)
  const wanted = useDeferredValue(text.trim())
  const found = useQuery({
    ...read('search', { query: { q: wanted } }),
    enabled: wanted.length > 1,
    placeholderData: keepPreviousData,
    refetchInterval: false,
  })
  const pages = pagesFor(me.role)
    .flat()
    .concat({ to: '/account', label: 'Account', icon: 'account', shortcut: '' })
    .filter((page) => page.label.toLowerCase().includes(text.trim().toLowerCase()))
  const choices: Choice[] = [
    ...pages.map((page) => ({
      key: page.to,
      icon: page.icon,
      title: page.label,
      detail: 'Page',
      link: { to: page.to },
    })),
    ...(wanted.length > 1 ? (found.data?.data ?? []) : []).map((thing) => ({
      key: thing.id,
      icon: KINDS[thing.kind][0],
      title: thing.title,
      detail: [KINDS[thing.kind][1], thing.detail].filter(Boolean).join(' · '),
      link: linkTo(thing),
    })),
  ]
  const chosen = Math.min(active, choices.length - 1)
  const open = (choice: Choice | undefined) => {
    if (!choice) return
    onClose()
    void navigate(choice.link)
  }
  return (
    <Dialog title="Find" className="command-menu" onClose={onClose}>
      <input
        type="text"
        className="input"
        role="combobox"
        aria-label="Find a page, workflow, webhook source, id or request id"
        placeholder="Find a page, workflow, webhook source, id or request id"
        aria-expanded="true"
        aria-controls="command-list"
        aria-activedescendant={choices.length > 0 ? `command-${chosen}` : undefined}
        autoComplete="off"
        maxLength={200}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setActive(0)
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (step) setActive((chosen + step + choices.length) % Math.max(choices.length, 1))
          else if (event.key === 'Enter' && !event.nativeEvent.isComposing) open(choices[chosen])
          else return
          event.preventDefault()
        }}
      />
      <ul id="command-list" role="listbox" aria-label="Found">
        {choices.map((choice, index) => (
          // The text field has the focus and handles the keys.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={choice.key}
            id={`command-${index}`}
            role="option"
            aria-selected={index === chosen}
            ref={index === chosen ? (item) => item?.scrollIntoView({ block: 'nearest' }) : undefined}
            onClick={() => open(choice)}
            onPointerMove={() => setActive(index)}
          >
            <Icon name={choice.icon} />
            <span className="ellipsis">{choice.title}</span>
            <span className="muted ellipsis">{choice.detail}</span>
          </li>
        ))}
      </ul>
      {choices.length === 0 ? (
        <p className="muted" role="status">
          {found.isFetching ? 'Searching …' : 'Nothing found. Ids must be complete.'}
        </p>
      ) : null}
    </Dialog>
  )
}
