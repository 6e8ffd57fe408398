import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { AppResponseBody, WorkflowDetailOut } from '@workflow-service/contract'
import { FILE_CONTENT_MAX_BYTES, FILE_MEDIA_CONTENT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { mediaTypeOf, readMediaContent } from '@workflow-service/contract/media-file'
import { type ChangeEvent, useRef, useState } from 'react'
import { call, describeError, newId, refresh, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { askToConfirm, FormDialog } from '../../components/dialog.tsx'
import { TextAreaField, TextField } from '../../components/fields.tsx'
import { linkBeside, useOpened } from '../../components/filters.tsx'
import { editFormOptions } from '../../components/form.tsx'
import { Icon } from '../../components/icons.tsx'
import { EmptyState, Loaded, Notice, Section } from '../../components/page.tsx'
import { tryLink } from '../../components/thing-link.tsx'
import { toast } from '../../components/toast.ts'
import { NEW_RULES, RulesEditor } from './rules-editor.tsx'
import { findRules } from './readiness-panel.tsx'
import { useWorkflow } from './use-workflow.ts'

type FileRow = WorkflowDetailOut['files'][number]

const NEW = 'new'
const sizeText = (bytes: number) => (bytes < 1_024 ? `${bytes} B` : `${(bytes / 1_024).toFixed(1)} KiB`)
const foldersOf = (text: string) => text.split('/').flatMap((name) => name.trim() || [])

export function WorkflowFilesPage() {
  const workflow = useWorkflow()
  const [file, open] = useOpened('file')
  const [run, openRun] = useOpened('run')
  const picker = useRef<HTMLInputElement>(null)
  const [failures, setFailures] = useState<string[]>([])
  const folders = Map.groupBy(workflow.files, ({ path }) => path.join('/') || 'Top folder')

  async function upload({ target }: ChangeEvent<HTMLInputElement>) {
    const files = [...(target.files ?? [])]
    target.value = ''
    const results = await Promise.all(files.map(async (each) => await uploadFile(workflow, each)))
    const failed = results.filter((failure) => failure !== undefined)
    setFailures(failed)
    await refresh(['workflows'])
    const count = files.length - failed.length
    if (count > 0) toast(count === 1 ? 'Uploaded.' : `${count} files uploaded.`)
  }

  const inputs = { type: 'file', multiple: true, hidden: true, 'aria-label': 'Files to upload' }
  return (
    <Section
      title="Files"
      intro="Texts that the agent reads: prices, templates. PDFs and images that a start, the input message or the task refers to, such as @invoice.pdf, for models that read them. The built-in agent follows rules.yaml, if there is one, instead of the task."
      actions={
        <>
          <input ref={picker} {...inputs} onChange={(event) => void upload(event)} />
          <Button label="Upload" icon="up" onClick={() => picker.current?.click()} />
          <Button label="New file" icon="plus" onClick={() => open(NEW)} />
        </>
      }
    >
      {failures.length > 0 ? (
        <Notice kind="danger">
          {failures.map((failure) => (
            <p key={failure} role="alert">
              {failure}
            </p>
          ))}
        </Notice>
      ) : null}
      {workflow.files.length === 0 ? (
        <EmptyState icon="file" title="No file yet" text="Upload text files, or write one here." />
      ) : null}
      {[...folders].map(([folder, files]) => (
        <section key={folder} aria-label={folder}>
          <h3 className="row">
            <Icon name="folder" />
            {folder}
          </h3>
          <ul className="lines">
            {files.map(({ id, name, size }) => (
              <li key={id} className="row">
                <Link {...linkBeside('file', id)}>{name}</Link>
                <span className="muted at-end">{sizeText(size)}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {file === NEW ? <FileDrawer onClose={open} /> : null}
      {file === NEW_RULES ? <DraftedRules onClose={open} /> : null}
      {run ? <DraftedRules runId={run} onClose={openRun} /> : null}
      {file && file !== NEW && file !== NEW_RULES ? <OpenFile id={file} onClose={open} /> : null}
    </Section>
  )
}

/** Uploads a file to the top folder. Resolves to what went wrong. */
async function uploadFile(workflow: WorkflowDetailOut, file: File): Promise<string | undefined> {
  const isMedia = mediaTypeOf(file.name) !== undefined
  const maxMiB = (isMedia ? (FILE_MEDIA_CONTENT_MAX_LENGTH / 4) * 3 : FILE_CONTENT_MAX_BYTES) / 1_048_576
  if (file.size > maxMiB * 1_048_576) return `${file.name} is larger than ${maxMiB} MiB.`
  if (workflow.files.some(({ name, path }) => path.length === 0 && name === file.name)) {
    return `${file.name} exists already. Open it to replace its text, or rename one of them.`
  }
  const content = await (isMedia ? readBase64(file) : readText(file))
  if (content === undefined) {
    return `${file.name} is ${isMedia ? 'no PDF or image, as its name says' : 'not a text file in UTF-8'}.`
  }
  try {
    const params = { workflow_id: workflow.id, file_id: newId() }
    await call('saveFile', { params, body: { name: file.name, path: [], content, version: null } })
    return undefined
  } catch (error) {
    return `${file.name}: ${describeError(error)}`
  }
}

/** Undefined if it is no text. UTF-16 may be valid UTF-8 with NULs, which are not stored. */
async function readText(file: File): Promise<string | undefined> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

/** Undefined if its bytes are not those of its name. */
async function readBase64(file: File): Promise<string | undefined> {
  const reader = new FileReader()
  reader.readAsDataURL(file)
  await new Promise((resolve) => reader.addEventListener('loadend', resolve))
  return readMediaContent(file.name, typeof reader.result === 'string' ? reader.result.replace(/^[^,]*,/, '') : '')
}

function OpenFile({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useRead('getFile', { params: { workflow_id: useWorkflow().id, file_id: id } })
  return <Loaded query={query}>{(file) => <FileDrawer key={file.id} file={file} onClose={onClose} />}</Loaded>
}

/**
 * The rules that the workflow needs, or a run that was refused: a new file, or after the rules that there are, as a
 * comment. Saved, the run is started again.
 */
function DraftedRules({ runId, onClose }: { runId?: string; onClose: () => void }) {
  const workflow = useWorkflow()
  const navigate = useNavigate()
  // As they were at first: the drawer stays open when a task or rules are saved meanwhile.
  const [{ rules, version }] = useState(() => ({ rules: findRules(workflow), version: workflow.version }))
  const params = { workflow_id: workflow.id }
  const query = useQuery({
    queryKey: ['draftedRules', workflow.id, version, runId, rules],
    queryFn: async () =>
      await Promise.all([
        runId ? call('getRulesDraft', { params: { run_id: runId } }) : call('draftRules', { params }),
        rules && call('getFile', { params: { ...params, file_id: rules.id } }),
      ]),
    // What is written must not be replaced.
    staleTime: Infinity,
    refetchInterval: false,
    refetchOnWindowFocus: false,
  })
  return (
    <Loaded query={query}>
      {([{ content: draft }, file]) => (
        <FileDrawer
          file={file}
          rules={file ? `${file.content.trimEnd()}\n\n${draft.trimEnd().replaceAll(/^/gm, '# ')}\n` : draft}
          onSaved={runId ? () => navigate(tryLink(workflow.id, { again: runId })) : undefined}
          onClose={onClose}
        />
      )}
    </Loaded>
  )
}

const valuesOf = (file: AppResponseBody<'getFile'> | undefined) => ({
  name: file?.name ?? '',
  path: file?.path.join('/') ?? '',
  content: file?.content ?? '',
})

/** Edits a file, or a new one. */
function FileDrawer(props: {
  file?: AppResponseBody<'getFile'>
  /** The text to begin with of a `rules.yaml`. */
  rules?: string
  onSaved?: () => Promise<void>
  onClose: () => void
}) {
  const { file, rules, onClose, onSaved = async () => (file && !rules ? undefined : onClose()) } = props
  const workflow = useWorkflow()
  const [id] = useState(() => file?.id ?? newId())
  const params = { workflow_id: workflow.id, file_id: id }
  const row = workflow.files.find((each) => each.id === id)
  const remove = (saved: FileRow) =>
    askToConfirm({
      title: `Delete ${saved.name}`,
      text: 'The agent no longer reads it. An earlier version under “History” brings it back.',
      action: 'Delete file',
      onConfirm: async () => {
        await call('deleteFile', { params, query: { version: saved.version } })
        onClose()
        await refresh(['workflows'])
      },
      done: 'Deleted.',
    })
  return (
    <FormDialog
      {...editFormOptions(file, (saved) =>
        // What another person has saved meanwhile is shown as it is.
        rules && saved === file ? { name: 'rules.yaml', path: '', content: rules } : valuesOf(saved),
      )}
      className="drawer"
      title={file?.name ?? 'New file'}
      action={file ? 'Save' : 'Create file'}
      canReset={file !== undefined}
      save={async (values, version) => {
        const body = { ...values, path: foldersOf(values.path), version: version || null }
        const { files } = await mutate('saveFile', { params, body })
        await onSaved()
        return files.find((each) => each.id === id)
      }}
      onClose={onClose}
      tools={row && <Button label="Delete" icon="trash" onClick={() => remove(row)} />}
      fields={({ field, values: { name, path } }) => (
        <>
          <div className="columns">
            <TextField required placeholder="prices.md" {...field('name', 'Name')} />
            <TextField placeholder="docs/shop" hint="Empty for the top folder." {...field('path', 'Folder')} />
          </div>
          {file && mediaTypeOf(file.name) && readMediaContent(file.name, file.content) ? (
            <Media file={file} />
          ) : name.trim() === 'rules.yaml' && path.trim() === '' ? (
            <RulesEditor field={field('content', 'Text')} />
          ) : (
            <TextAreaField isCode rows={18} {...field('content', 'Text')} />
          )}
        </>
      )}
    />
  )
}

/** A PDF or an image, which is replaced by deleting it and uploading another one. */
function Media({ file: { name, path, content } }: { file: AppResponseBody<'getFile'> }) {
  const { kind, mediaType } = mediaTypeOf(name)!
  const url = `data:${mediaType};base64,${content}`
  return (
    <div className="stack">
      <p>
        A text refers to it as <code>@{[...path, name].join('/')}</code>, for a model that reads it.
      </p>
      {kind === 'image' ? <img className="media" src={url} alt={name} /> : null}
      <a href={url} download={name}>
        Download
      </a>
    </div>
  )
}
