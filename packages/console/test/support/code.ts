import type { Locator } from '@workflow-service/testkit/use-browser'

/** The text of an editor of code. */
export const codeIn = (editor: Locator): Promise<string> =>
  editor.evaluate((element) =>
    Array.from(element.querySelectorAll('.cm-line'), ({ textContent }) => textContent).join('\n'),
  )

/** Writes over the text of an editor of code as a person does: `fill` edits the elements themselves. */
export async function writeCode(editor: Locator, text: string): Promise<void> {
  await editor.press('ControlOrMeta+a')
  await (text === '' ? editor.press('Delete') : editor.page().keyboard.insertText(text))
}
