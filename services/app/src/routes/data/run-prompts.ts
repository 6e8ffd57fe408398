import { type AppAnswer, listConversation } from '@workflow-service/contract'
import type { findRunPrompts } from '@workflow-service/database'

type Found = NonNullable<Awaited<ReturnType<typeof findRunPrompts>>>

/**
 * The requests of a run to its model (contract README, "The prompt of a model"): each names its prompt, and how many of
 * the messages it had after the first one. Requests of a run that was recorded without prompts are left out.
 */
export function toRunPrompts({ prompts, steps }: Found): AppAnswer<'getRunPrompts'> {
  const [, ...messages] = listConversation('', steps)
  const promptAt = (position: number): number => prompts.findLastIndex((prompt) => prompt.position <= position)
  const countBefore = (position: number): number =>
    messages.filter((message) => message.position !== null && message.position < position).length
  const answers = steps.flatMap(({ kind, position }) => (kind === 'model_answer' ? [position] : []))
  const askedPosition = prompts.at(-1)?.askedPosition ?? -1
  const requests = [
    ...answers.map((position, index) => ({ turn: index + 1, position, is_answered: true })),
    ...(askedPosition > (answers.at(-1) ?? -1)
      ? [{ turn: answers.length + 1, position: askedPosition, is_answered: false }]
      : []),
  ]
  return {
    prompts: prompts.map(({ prompt: { instructions, tools, message, omitted_bytes = null } }) => ({
      instructions,
      tools: [...tools],
      message,
      omitted_bytes,
    })),
    messages: messages.map(({ role, ...message }) => ({
      role,
      content: 'text' in message ? message.text : 'parts' in message ? message.parts : message.results,
    })),
    requests: requests.flatMap(({ turn, position, is_answered }) => {
      const prompt = promptAt(position)
      return prompt === -1 ? [] : [{ turn, prompt, messages: countBefore(position), is_answered }]
    }),
  }
}
