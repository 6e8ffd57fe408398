// Writes openapi.json: `pnpm --filter @workflow-service/gateway openapi`. A test fails when the file is out of date.
import { writeFile } from 'node:fs/promises'
import { describePublicApi } from '@workflow-service/contract'

await writeFile(new URL('../openapi.json', import.meta.url), `${JSON.stringify(describePublicApi(), null, 2)}\n`)
