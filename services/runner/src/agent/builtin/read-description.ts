import { type ReadDescription, readDescription } from '@workflow-service/contract'
import { LRUCache } from 'lru-cache'
import type { AgentSourceName } from '../agent.ts'

interface Reading extends Pick<ReadDescription<AgentSourceName>, 'rulesNeeded'> {
  /** The indexes of the sources that the description names. */
  readonly named: readonly number[]
}

/** By the texts and names that were read: the runs of a workflow have the same ones until a person changes them. */
const cache = new LRUCache<string, Reading>({ maxSize: 2 * 1024 * 1024, sizeCalculation: (_, texts) => texts.length })

/** Reads a description as `readDescription` of the contract does; the same texts and names only once. */
export function readDescriptionOnce(
  description: string,
  sources: readonly AgentSourceName[],
  inputMessage: string,
): ReadDescription<AgentSourceName> {
  const texts = JSON.stringify([description, inputMessage, sources.map(({ name }) => name)])
  let reading = cache.get(texts)
  if (!reading) {
    const { named, rulesNeeded } = readDescription(description, sources, inputMessage)
    reading = { named: named.map((source) => sources.indexOf(source)), rulesNeeded }
    cache.set(texts, reading)
  }
  return { named: reading.named.flatMap((index) => sources[index] ?? []), rulesNeeded: reading.rulesNeeded }
}
