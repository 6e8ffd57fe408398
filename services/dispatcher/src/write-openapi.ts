// Writes openapi.json anew: `pnpm --filter @workflow-service/dispatcher openapi`. A test says when it is stale.
import { writeFile } from 'node:fs/promises'
import { describeInternalApi } from '@workflow-service/contract'

await writeFile(new URL('../openapi.json', import.meta.url), `${JSON.stringify(describeInternalApi(), null, 2)}\n`)
