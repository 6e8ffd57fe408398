// Generates the Prisma client into src/generated. Prisma would download a schema engine that `generate` never runs; the
// path of any existing file prevents that.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packageFolder = dirname(dirname(fileURLToPath(import.meta.url)))
const prisma = createRequire(import.meta.url).resolve('prisma/package.json')
const done = spawnSync(
  process.execPath,
  [join(dirname(prisma), 'build/index.js'), 'generate', '--schema', join(packageFolder, 'prisma/schema.prisma')],
  {
    cwd: packageFolder,
    env: {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      CHECKPOINT_DISABLE: '1',
    },
    encoding: 'utf8',
  },
)
if (done.status !== 0) {
  process.stderr.write(`${done.stdout}${done.stderr}`)
  process.exit(done.status ?? 1)
}
