// Starts a dispatcher as its `main.ts` does, with another deadline of deliveries: `node dispatcher-process.ts
// MILLISECONDS`.
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { runService } from '@workflow-service/service-kit'

await runService(() => startDispatcher(readDispatcherConfig(), { deliveryDeadlineMs: Number(process.argv[2]) }))
