// Prints as JSON what publint and "are the types wrong" find in a tarball: `node check-package.ts TARBALL`. A process
// of its own, because Jest would load the second one's TypeScript compiler into its own module registry.
import { readFileSync } from 'node:fs'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

const tarball = new Uint8Array(readFileSync(process.argv[2] ?? ''))
const { messages, pkg } = await publint({ strict: true, pack: { tarball: tarball.buffer } })
// A package of programs alone has no types.
const hasTypes = pkg['exports'] !== undefined
const types = hasTypes ? await checkPackage(createPackageFromTarballData(tarball)) : undefined
const problems = [
  ...messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`),
  ...(types ? (types.types ? types.problems : [{ kind: 'NoTypes' }]) : []).map(
    (problem) => `types: ${JSON.stringify(problem)}`,
  ),
]
process.stdout.write(JSON.stringify(problems))
