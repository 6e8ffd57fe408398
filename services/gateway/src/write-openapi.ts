// Writes openapi.json anew: `pnpm --filter @workflow-service/gateway openapi`. A test says when it is stale.
import { writeFile } from 'node:fs/promises'
import { describePublicApi } from '@workflow-service/contract'

await writeFile(new URL('../openapi.json', import.meta.url), `${JSON.stringify(describePublicApi(), null, 2)}\n`)
