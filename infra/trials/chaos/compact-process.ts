// Starts runner and dispatcher as services/compact does, with other times: `node compact-process.ts OVERRIDES_AS_JSON`.
import { type CompactOverrides, readCompactConfig, startCompact } from '@workflow-service/compact'
import { runService } from '@workflow-service/service-kit'

const overrides = JSON.parse(process.argv[2] ?? '{}') as CompactOverrides
await runService(() => startCompact(readCompactConfig(), overrides))
