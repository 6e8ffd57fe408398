// pnpm trial NAME: see ../README.md
import { Command } from 'commander'
import { imageCommand } from './image.ts'

// Servers and programs end with this process; their folders are removed when it exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  await new Command('trial')
    .description('Longer checks of the whole service that are no tests.')
    .addCommand(imageCommand)
    .parseAsync()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
