import type { AppAnswer } from '@workflow-service/contract'
import { useState } from 'react'
import { useRead } from '../../api/index.ts'
import { Loaded, Section } from '../../components/page.tsx'
import { JsonView, LongText } from '../../components/values.tsx'

type RunPrompts = AppAnswer<'getRunPrompts'>

/** What the model was asked in a run, for admins: read when it is opened, since it is large. */
export function Prompts({ runId }: { runId: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>What the model was asked</summary>
      {isOpen ? <LoadedPrompts runId={runId} /> : null}
    </details>
  )
}

function LoadedPrompts({ runId }: { runId: string }) {
  const query = useRead('getRunPrompts', { params: { run_id: runId } })
  return (
    <Loaded query={query}>
      {(data) =>
        data.requests.length === 0 ? (
          <p className="muted">Nothing is recorded: the run has asked no model yet, or is older than this record.</p>
        ) : (
          data.requests.map((request) => <Request key={request.turn} data={data} request={request} />)
        )
      }
    </Loaded>
  )
}

function Request({ data, request }: { data: RunPrompts; request: RunPrompts['requests'][number] }) {
  const { instructions, tools, message, omitted_bytes: omitted } = data.prompts[request.prompt]!
  const messages = data.messages.slice(0, request.messages)
  const title = `Request ${request.turn}${request.is_answered ? '' : ', not answered'}`
  return (
    <Section title={title}>
      {omitted === null ? null : <p>The prompt is large: {omitted.toLocaleString('en')} bytes of it are not kept.</p>}
      <h3>System text</h3>
      <LongText text={instructions} />
      <h3>Tools</h3>
      <JsonView label={`tools of request ${request.turn}`} value={tools} />
      <h3>Messages</h3>
      <ol className="lines">
        <Message from="user" content={message} />
        {messages.map(({ role, content }, index) => (
          // The list only grows at its end.
          // oxlint-disable-next-line react/no-array-index-key
          <Message key={index} from={role} content={content} />
        ))}
      </ol>
    </Section>
  )
}

function Message({ from, content }: { from: string; content: unknown }) {
  return (
    <li className="stack">
      <span className="muted">{from}</span>
      {typeof content === 'string' ? (
        <LongText text={content} />
      ) : (
        <JsonView label={`${from} message`} value={content} />
      )}
    </li>
  )
}
