// The text of a command file or a job file in CodeMirror, loaded only when it is needed. Errors stand at their lines.
import { indentOnInput } from '@codemirror/language'
import { type Diagnostic, linter, lintGutter, setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { Decoration, EditorView, keymap, MatchDecorator, ViewPlugin, type ViewUpdate } from '@codemirror/view'
import { basicSetup } from 'codemirror'
import { useEffect, useRef } from 'react'
import type { Flaw } from '../api/types'

const commands = new MatchDecorator({
  regexp: /^\s*#.*$|\{(?:work_dir|uni_id|available_gpu|gpu_list)\}|^\d+(?:\s*,\s*[\d.]+)?\s*$/gm,
  decoration: (match) =>
    Decoration.mark({
      class: match[0].trimStart().startsWith('#') ? 'cm-note' : match[0].startsWith('{') ? 'cm-hole' : 'cm-num',
    }),
})

const yaml = new MatchDecorator({
  regexp: /(?:^|(?<=\s))#.*$|\{[\w.]+\}|^\s*(?:- +)?[\w.-]+(?=:(?:\s|$))/gm,
  decoration: (match) =>
    Decoration.mark({ class: match[0].startsWith('#') ? 'cm-note' : match[0].startsWith('{') ? 'cm-hole' : 'cm-key' }),
})

const coloured = (words: MatchDecorator) =>
  ViewPlugin.fromClass(
    class {
      marks
      constructor(view: EditorView) {
        this.marks = words.createDeco(view)
      }
      update(update: ViewUpdate): void {
        this.marks = words.updateDeco(update, this.marks)
      }
    },
    { decorations: (plugin) => plugin.marks },
  )

const look = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--log)', color: 'var(--t1)', fontSize: '11.5px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '19px' },
  '.cm-gutters': { backgroundColor: 'var(--log)', color: 'var(--t3)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent) 8%, transparent)' },
  '.cm-content': { caretColor: 'var(--t1)' },
  '.cm-cursor': { borderLeftColor: 'var(--t1)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 28%, transparent) !important',
  },
  '.cm-note': { color: 'var(--t3)' },
  '.cm-hole': { color: 'var(--wait)' },
  '.cm-num': { color: 'var(--ansi5)' },
  '.cm-key': { color: 'var(--accent)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--s1)', color: 'var(--t1)', border: '1px solid var(--line2)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--fail-solid)' },
})

interface EditorProps {
  text: string
  flaws: Flaw[]
  readOnly: boolean
  label: string
  onChange: (text: string) => void
  onSave: () => void
  jump: { line: number; n: number } | null
  isYaml?: boolean
}

function diagnostics(state: EditorState, flaws: readonly Flaw[]): Diagnostic[] {
  return flaws.map((flaw) => {
    const line = state.doc.line(Math.min(Math.max(1, flaw.line ?? 1), state.doc.lines))
    return { from: line.from, to: line.to, severity: 'error', message: flaw.text }
  })
}

export default function Editor({ text, flaws, readOnly, label, onChange, onSave, jump, isYaml }: EditorProps) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const lock = useRef(new Compartment())
  const handlers = useRef({ onChange, onSave })
  handlers.current = { onChange, onSave }

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; what changes is handed on below
  useEffect(() => {
    if (!place.current) return
    const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce ?? ''
    const save = (): boolean => {
      handlers.current.onSave()
      return true
    }
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          basicSetup,
          EditorView.cspNonce.of(nonce),
          keymap.of([{ key: 'Mod-s', run: save, preventDefault: true }]),
          indentOnInput(),
          linter(null),
          lintGutter(),
          coloured(isYaml ? yaml : commands),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          lock.current.of(EditorState.readOnly.of(readOnly)),
          EditorView.updateListener.of((update) => {
            if (
              update.docChanged &&
              update.transactions.some(
                (one) =>
                  one.isUserEvent('input') ||
                  one.isUserEvent('delete') ||
                  one.isUserEvent('move') ||
                  one.isUserEvent('undo') ||
                  one.isUserEvent('redo'),
              )
            )
              handlers.current.onChange(update.state.doc.toString())
          }),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
  }, [])

  useEffect(() => {
    const made = view.current
    if (made && made.state.doc.toString() !== text)
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } })
  }, [text])
  useEffect(() => {
    const made = view.current
    made?.dispatch({ effects: lock.current.reconfigure(EditorState.readOnly.of(readOnly)) })
  }, [readOnly])
  useEffect(() => {
    const made = view.current
    if (made) made.dispatch(setDiagnostics(made.state, diagnostics(made.state, flaws)))
  }, [flaws])
  useEffect(() => {
    const made = view.current
    if (!made || !jump) return
    const line = made.state.doc.line(Math.min(Math.max(1, jump.line), made.state.doc.lines))
    made.dispatch({ selection: { anchor: line.from }, scrollIntoView: true })
    made.focus()
  }, [jump])
  return <div ref={place} className="editor" />
}
