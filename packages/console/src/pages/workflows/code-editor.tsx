import {
  deleteGroupBackward,
  deleteGroupForward,
  history,
  historyKeymap,
  insertNewlineKeepIndent,
  selectAll,
} from '@codemirror/commands'
import { Annotation, EditorState, StateEffect, StateField } from '@codemirror/state'
import {
  type Command,
  Decoration,
  type DecorationSet,
  EditorView,
  highlightActiveLine,
  type KeyBinding,
  keymap,
  lineNumbers,
  MatchDecorator,
  ViewPlugin,
  type ViewUpdate,
} from '@codemirror/view'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'

/** An error at a line from 1; null: of the whole text. */
export interface CodeError {
  readonly line: number | null
  readonly message: string
}

/** What a page does with an editor. */
export interface CodeEditorHandle {
  /** Writes a text at the cursor, and moves the focus there. */
  insert(text: string): void
}

interface CodeEditorProps {
  label: string
  value: string
  onValue: (value: string) => void
  /** Finds the errors of a text, after a pause of typing. */
  check: (text: string) => Promise<readonly CodeError[]>
  onReady: (handle: CodeEditorHandle) => void
}

const CHECK_AFTER_MS = 400

const LOOK = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', color: 'var(--text)', backgroundColor: 'var(--bg)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--bg-subtle)', color: 'var(--text-muted)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--bg-subtle) 60%, transparent)' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.yaml-comment': { color: 'var(--text-muted)' },
  '.yaml-key': { color: 'var(--accent)' },
  '.yaml-text': { color: 'var(--good)' },
  '.cm-line.wrong': { textDecoration: 'underline wavy var(--bad)', backgroundColor: 'var(--bad-bg)' },
})

/** A comment, a key, or a text in quotes. A parser of YAML would double the size of the editor. */
const TOKENS = /(?<comment>(?:^|\s)#.*$)|(?<key>[\w.-]+(?=:(?:\s|$)))|(?<text>"(?:[^"\\]|\\.)*"|'[^']*')/g
const KINDS = ['comment', 'key', 'text'] as const
const MARKS = Object.fromEntries(KINDS.map((kind) => [kind, Decoration.mark({ class: `yaml-${kind}` })]))

const matcher = new MatchDecorator({
  regexp: TOKENS,
  decoration: ({ groups }) => MARKS[KINDS.find((kind) => groups?.[kind] !== undefined) ?? 'text']!,
})

const COLORS = ViewPlugin.define(
  (view) => ({
    decorations: matcher.createDeco(view),
    update(update: ViewUpdate) {
      this.decorations = matcher.updateDeco(update, this.decorations)
    },
  }),
  { decorations: ({ decorations }) => decorations },
)

/** A change that the page has made: its text is known, and may have other line ends. */
const fromOutside = Annotation.define<boolean>()

const markErrors = StateEffect.define<readonly CodeError[]>()
const WRONG = Decoration.line({ class: 'wrong' })

/** Marks the lines with errors. Edits move the marks until the text is checked again. The lint package is 8 kB. */
const ERRORS = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, changes, state }) {
    const errors = effects.find((effect) => effect.is(markErrors))?.value
    if (!errors) return marks.map(changes)
    const lines = new Set(errors.map((error) => lineOf(state, error).from))
    return Decoration.set(
      [...lines].map((from) => WRONG.range(from)),
      true,
    )
  },
  provide: (field) => EditorView.decorations.from(field),
})

const lineOf = ({ doc }: EditorState, { line }: CodeError) => doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines))

/** Deletes the selection, or else the character before or after the cursor. That of the library is 11 kB. */
function deleteCharacter(isForward: boolean): Command {
  return (view) => {
    const { state } = view
    const { main } = state.selection
    const other = view.moveByChar(main, isForward).head
    const { from, to } = main.empty ? { from: Math.min(main.head, other), to: Math.max(main.head, other) } : main
    view.dispatch({ changes: { from, to }, scrollIntoView: true, userEvent: 'delete' })
    return true
  }
}

/**
 * Keys that the browser would handle by editing the elements: it keeps styles in style attributes then, which the
 * policy of the page refuses. The keymap of the library is 9 kB more.
 */
const KEYS: readonly KeyBinding[] = [
  { key: 'Backspace', run: deleteCharacter(false), shift: deleteCharacter(false) },
  { key: 'Delete', run: deleteCharacter(true) },
  { key: 'Mod-Backspace', mac: 'Alt-Backspace', run: deleteGroupBackward },
  { key: 'Mod-Delete', mac: 'Alt-Delete', run: deleteGroupForward },
  { key: 'Enter', run: insertNewlineKeepIndent },
  { key: 'Mod-a', run: selectAll },
]

/** Writes what is typed over a selection, for the same reason as `KEYS`. */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  const { state, composing } = view
  if (event.inputType !== 'insertText' || event.data === null || composing || state.selection.main.empty) return false
  view.dispatch({ ...state.replaceSelection(event.data), scrollIntoView: true, userEvent: 'input' })
  return true
}

/**
 * An editor of YAML with line numbers and errors at their lines. In a shadow root: there CodeMirror adopts style
 * sheets, while in a document it would insert style elements, which the policy of the page refuses. Tab leaves it.
 */
export function CodeEditor({ label, value, onValue, check, onReady }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef({ onValue, check, onReady })
  const [errors, setErrors] = useState<readonly CodeError[]>([])
  useEffect(() => {
    latest.current = { onValue, check, onReady }
  })
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' })
    let pause = 0
    const checkAfterPause = () => {
      window.clearTimeout(pause)
      pause = window.setTimeout(() => void checkTyped(), CHECK_AFTER_MS)
    }
    const checkTyped = async () => {
      const { doc } = editor.state
      const found = await latest.current.check(doc.toString())
      // Typed meanwhile: another check follows.
      if (editor.state.doc !== doc || view.current !== editor) return
      editor.dispatch({ effects: markErrors.of(found) })
      setErrors(found)
    }
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          history(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          keymap.of([...KEYS, ...historyKeymap]),
          COLORS,
          LOOK,
          ERRORS,
          EditorView.domEventHandlers({ beforeinput: replaceSelection }),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.updateListener.of(({ docChanged, state, transactions }) => {
            if (!docChanged) return
            const isTyped = transactions.some((each) => !each.annotation(fromOutside))
            if (isTyped) latest.current.onValue(state.doc.toString())
            checkAfterPause()
          }),
        ],
      }),
    })
    view.current = editor
    checkAfterPause()
    latest.current.onReady({
      insert(text) {
        editor.dispatch(editor.state.replaceSelection(text))
        editor.focus()
      },
    })
    return () => {
      window.clearTimeout(pause)
      view.current = undefined
      editor.destroy()
    }
    // The editor keeps its own text; what comes from outside is written below.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [label])
  // Before the next key: a later effect would write over what is typed meanwhile.
  useLayoutEffect(() => {
    const editor = view.current
    if (!editor || editor.state.doc.eq(editor.state.toText(value))) return
    const changes = { from: 0, to: editor.state.doc.length, insert: value }
    editor.dispatch({ changes, annotations: fromOutside.of(true) })
  }, [value])
  const goTo = (error: CodeError) => {
    const editor = view.current!
    editor.dispatch({ selection: { anchor: lineOf(editor.state, error).from }, scrollIntoView: true })
    editor.focus()
  }
  return (
    <>
      <div ref={host} className="code-editor" />
      <div className="field-error" role="status" aria-label="Errors of the text">
        {errors.map((error) => (
          <p key={`${error.line} ${error.message}`}>
            <button type="button" className="link" onClick={() => goTo(error)}>
              {error.message}
            </button>
          </p>
        ))}
      </div>
    </>
  )
}
