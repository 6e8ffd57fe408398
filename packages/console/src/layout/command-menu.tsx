import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useState } from 'react'
import { queryFor } from '../api/index.ts'
import { Dialog } from '../components/dialog.tsx'
import { TextField } from '../components/fields.tsx'
import { Icon } from '../components/icons.tsx'
import { tellingFields } from '../components/delivery-columns.tsx'
import { statusText } from '../components/status-and-time.tsx'
import { linkTo, THINGS } from '../components/thing-link.tsx'
import { useOptions } from '../components/use-options.tsx'
import type { PageEntry } from './pages.ts'

const DELIVERIES_SHOWN = 5

/** The page shows an id by its end; what copies it, and its tooltip, have the whole. */
function nothingFoundText(text: string): string {
  const isPartOfId = /^…?[0-9a-f-]{4,35}$/i.test(text)
  return isPartOfId
    ? 'Nothing found. This looks like a part of an id: copy the whole id with a click on it, or from the address of its page.'
    : 'Nothing found. Names and payloads are found by a part of them, ids and request ids as a whole.'
}

/** Finds pages by name, and everything else by name, id or request id. */
export function CommandMenu({ pages, onClose }: { pages: readonly PageEntry[]; onClose: () => void }) {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim())
  const search = useQuery({
    ...queryFor('search', { query: { q: wanted } }),
    enabled: wanted.length > 1,
    placeholderData: keepPreviousData,
    refetchInterval: false,
  })
  // As the list of deliveries: order numbers and words of payloads.
  const deliveries = useQuery({
    ...queryFor('listAllDeliveries', { query: { search: wanted, limit: DELIVERIES_SHOWN } }),
    enabled: wanted.length > 2,
    placeholderData: keepPreviousData,
    refetchInterval: false,
  })
  const found = [
    ...[...pages, { to: '/account', label: 'Account', icon: 'account' } as const]
      .filter(({ label }) => label.toLowerCase().includes(text.trim().toLowerCase()))
      .map(({ to, icon, label }) => ({ key: to, icon, title: label, detail: 'Page', link: { to } })),
    ...(wanted.length > 1 ? (search.data?.data ?? []) : []).map(({ kind, id, title, detail }) => {
      const [icon, name, linkOf] = THINGS[kind]
      return { key: id, icon, title, detail: [name, detail].filter(Boolean).join(' · '), link: linkOf(id) }
    }),
    ...(wanted.length > 2 ? (deliveries.data?.data ?? []) : [])
      .filter(({ id }) => search.data?.data.every((each) => each.id !== id))
      .map(({ id, source_name: source, request_body: body, outcome }) => ({
        key: id,
        icon: 'send' as const,
        title: tellingFields(body) || 'Delivery',
        detail: `Delivery to ${source ?? 'a deleted source'} · ${statusText(outcome)}`,
        link: linkTo('delivery', id),
      })),
  ]
  const options = useOptions(found, ({ link }) => {
    onClose()
    void navigate(link)
  })
  return (
    <Dialog title="Find" className="command-menu" onClose={onClose}>
      <TextField
        label="Find a page, workflow, webhook source, id or request id"
        isLabelHidden
        role="combobox"
        placeholder="Page, workflow, webhook source, id or request id"
        aria-expanded="true"
        {...options.aria}
        aria-controls={options.id}
        maxLength={200}
        value={text}
        onValue={(typed) => {
          setText(typed)
          options.restart()
        }}
        onKeyDown={(event) => void options.onKey(event)}
      />
      <ul id={options.id} role="listbox" aria-label="Found">
        {options.items(
          ({ key }) => key,
          ({ icon, title, detail }) => (
            <>
              <Icon name={icon} />
              <span className="ellipsis">{title}</span>
              <span className="muted ellipsis at-end">{detail}</span>
            </>
          ),
        )}
      </ul>
      {found.length === 0 ? (
        <p className="muted" role="status">
          {search.isFetching || deliveries.isFetching ? 'Searching …' : nothingFoundText(text.trim())}
        </p>
      ) : null}
    </Dialog>
  )
}
