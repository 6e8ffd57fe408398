/** A line of a mail. */
interface MailLine {
  readonly text: string
  readonly isAfterBlank: boolean
  /** Whether it begins with ">". */
  readonly isQuoted: boolean
}

/** "On Mon, 2 Mar 2026 at 10:00, Ada wrote:", "Am 02.03.2026 um 10:00 schrieb Ada:", "2026年3月2日 10:00 Ada <a@b.test>:". */
const ANSWERED =
  /^(?:on\s.{4,180}\swrote|am\s.{4,180}\sschrieb(?:\s.{1,120})?|.{4,180}さん(?:が|は)書きました|\d{4}年\d{1,2}月\d{1,2}日.{4,150}(?:>|書きました))\s*[:：]$/iu
const ORIGINAL =
  /^[-_*]{2,}\s*(?:original(?:nachricht| message| e-?mail)|ursprüngliche (?:nachricht|e-?mail)|元のメッセージ)/iu
/** What the header of a mail has at least. */
const HEADERS = [
  /^(?:from|von|差出人)\s*[:：]/iu,
  /^(?:sent|date|gesendet|datum|送信日時|日時)\s*[:：]/iu,
  /^(?:subject|betreff|件名)\s*[:：]/iu,
]

/**
 * Leaves out the lines of an older mail below an answer that has names and values of its own; those of an older mail below
 * a text without any are what is meant. `listNames` returns the known names of a line. A problem if the older mail names
 * more than the answer: what counts is then not clear.
 */
export function leaveOutOlderMail<Line extends MailLine>(
  lines: readonly Line[],
  listNames: (line: Line) => readonly string[],
): { lines: readonly Line[]; problem: string | undefined } {
  const begin = lines.findIndex((_line, index) => isBeginOfOlder(lines, index))
  if (begin === -1) return { lines, problem: undefined }
  const listContent = (line: Line): readonly string[] =>
    HEADERS.some((name) => name.test(line.text)) ? [] : listNames(line)
  const newer = new Set(lines.slice(0, begin).flatMap(listContent))
  if (newer.size === 0) return { lines, problem: undefined }
  // Below a quoted mail, the answer can go on.
  const areQuoted = lines.slice(begin).some(({ isQuoted }) => isQuoted)
  const older = lines.slice(begin).filter((line, index) => !areQuoted || line.isQuoted || index === 0)
  const isOlder = new Set(older)
  // The second line of "On Mon, 2 Mar 2026, Ada <ada@acme.test>" and "wrote:".
  const kept = lines.filter((line) => !isOlder.has(line) && !/^(?:wrote|schrieb)\s*:$/iu.test(line.text))
  const missing = new Set(older.flatMap(listContent).filter((name) => !newer.has(name)))
  if (missing.size > newer.size)
    return { lines: kept, problem: 'an older mail below the answer names more than the answer' }
  const addresses = new Set(kept.flatMap(listAddresses))
  const other = older
    .filter(isContent)
    .flatMap(listAddresses)
    .find((address) => !addresses.has(address))
  const problem = other && `an older mail below the answer names another address: ${JSON.stringify(other)}`
  return { lines: kept, problem }
}

/** Whether the line is neither of the header of a mail nor above one. */
function isContent({ text }: MailLine): boolean {
  return (
    !ANSWERED.test(text) &&
    !/^(?:from|to|cc|reply-to|von|an|on|am|差出人|宛先)(?:\s|[:：])|(?:wrote|schrieb)/iu.test(text)
  )
}

function listAddresses({ text }: MailLine): readonly string[] {
  return text.toLowerCase().match(/[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}/g) ?? []
}

function isBeginOfOlder(lines: readonly MailLine[], index: number): boolean {
  const { text = '', isAfterBlank = false, isQuoted = false } = lines[index] ?? {}
  if (index === 0 || text.length > 200) return false
  const before = lines[index - 1]
  if (ORIGINAL.test(text) || ANSWERED.test(text)) return true
  if (/^(?:on|am)\s/iu.test(text) && ANSWERED.test(`${text} ${(lines[index + 1]?.text ?? '').slice(0, 200)}`))
    return true
  // A quotation below "Message:" is the message.
  if (isQuoted) return isAfterBlank && before?.isQuoted === false && !/[:：]$/u.test(before.text)
  if (!isAfterBlank || !HEADERS[0]?.test(text)) return false
  const header = lines.slice(index, index + 6)
  return HEADERS.every((name) => header.some((line) => name.test(line.text)))
}
