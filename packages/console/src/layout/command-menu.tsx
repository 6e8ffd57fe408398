import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useEffectEvent, useState } from 'react'
import { queryFor } from '../api/index.ts'
import { Dialog } from '../components/dialog.tsx'
import { TextField } from '../components/fields.tsx'
import { Icon } from '../components/icons.tsx'
import { tellingFields } from '../components/delivery-columns.tsx'
import { statusText } from '../components/status-and-time.tsx'
import { fold } from '../components/text.ts'
import { linkTo, THINGS } from '../components/thing-link.tsx'
import { isComposing, useOptions } from '../components/use-options.tsx'
import type { PageEntry } from './pages.ts'

const SHOWN_OF_LIST = 5

const NOTHING_FOUND =
  'Nothing found. Names are found by a part of them, texts and payloads by their words and numbers, ids as a whole, and those of runs and deliveries by their last 8 characters.'

/** What the text finds, and whether more may come. Until it is searched, what an earlier text has found is kept. */
function useFound(pages: readonly PageEntry[], text: string) {
  const wanted = useDeferredValue(text.trim())
  const search = useQuery({
    ...queryFor('search', { query: { q: wanted } }),
    enabled: wanted.length > 1,
    placeholderData: keepPreviousData,
    refetchInterval: false,
  })
  // As the lists of runs and deliveries: order numbers and words of texts and payloads.
  const query = { search: wanted.replace(/^…/, ''), limit: SHOWN_OF_LIST }
  const options = { enabled: wanted.length > 2, placeholderData: keepPreviousData, refetchInterval: false } as const
  const deliveries = useQuery({ ...queryFor('listAllDeliveries', { query }), ...options })
  const runs = useQuery({ ...queryFor('listRuns', { query }), ...options })
  const isOld = ({ isPlaceholderData }: { isPlaceholderData: boolean }) => isPlaceholderData || wanted !== text.trim()
  const found = [
    ...[...pages, { to: '/account', label: 'Account', icon: 'account' } as const]
      .filter(({ label }) => fold(label).includes(fold(text.trim())))
      .map(({ to, icon, label }) => ({ key: to, icon, title: label, detail: 'Page', link: { to }, isOld: false })),
    ...(wanted.length > 1 ? (search.data?.data ?? []) : []).map(({ kind, id, title, detail }) => {
      const [icon, name, linkOf] = THINGS[kind]
      return {
        key: id,
        icon,
        title,
        detail: [name, detail].filter(Boolean).join(' · '),
        link: linkOf(id),
        isOld: isOld(search),
      }
    }),
    ...(wanted.length > 2 ? (deliveries.data?.data ?? []) : [])
      .filter(({ id }) => search.data?.data.every((each) => each.id !== id))
      .map(({ id, source_name: source, request_body: body, outcome }) => ({
        key: id,
        icon: 'send' as const,
        title: tellingFields(body) || 'Delivery',
        detail: `Delivery to ${source ?? 'a deleted source'} · ${statusText(outcome)}`,
        link: linkTo('delivery', id),
        isOld: isOld(deliveries),
      })),
    ...(wanted.length > 2 ? (runs.data?.data ?? []) : [])
      .filter(({ id }) => search.data?.data.every((each) => each.id !== id))
      .map(({ id, first_line: firstLine, workflow, status }) => ({
        key: id,
        icon: 'run' as const,
        title: firstLine || 'Run',
        detail: `Run of ${workflow.name} · ${statusText(status)}`,
        link: linkTo('run', id),
        isOld: isOld(runs),
      })),
  ]
  const isFetching = search.isFetching || deliveries.isFetching || runs.isFetching
  return { found, isSearching: isFetching || wanted !== text.trim() }
}

/** Finds pages by name, and everything else by name, id or request id. */
export function CommandMenu({ pages, onClose }: { pages: readonly PageEntry[]; onClose: () => void }) {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const { found, isSearching } = useFound(pages, text)
  const open = ({ link }: (typeof found)[number]) => {
    onClose()
    void navigate(link)
  }
  const choices = useOptions(found, open)
  const { chosen } = choices
  // Enter waits for what the text finds, and not for what it would find later.
  const isFound = chosen?.isOld === false
  const [isEntered, setIsEntered] = useState(false)
  if (isEntered && !isFound && !isSearching) setIsEntered(false)
  const openChosen = useEffectEvent(() => chosen && open(chosen))
  useEffect(() => {
    if (isEntered && isFound) openChosen()
  }, [isEntered, isFound])
  return (
    <Dialog title="Find" className="command-menu" onClose={onClose}>
      <TextField
        label="Find a page, workflow, webhook source, id or request id"
        isLabelHidden
        role="combobox"
        placeholder="Page, workflow, webhook source, id or request id"
        aria-expanded="true"
        {...choices.aria}
        aria-controls={choices.id}
        maxLength={200}
        value={text}
        onValue={(typed) => {
          setText(typed)
          setIsEntered(false)
          choices.restart()
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || isComposing(event)) return void choices.onKey(event)
          // Otherwise it presses what has the focus after the dialog.
          event.preventDefault()
          setIsEntered(true)
        }}
      />
      <ul id={choices.id} role="listbox" aria-label="Found">
        {choices.items(
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
      <p className={found[0] ? 'visually-hidden' : 'muted'} role="status">
        {found[0] ? `${found.length} found` : isSearching ? 'Searching …' : NOTHING_FOUND}
      </p>
    </Dialog>
  )
}
