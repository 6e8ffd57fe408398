import type { Attack } from '../attack.ts'
import { APPLICATION_ATTACKS } from './application.ts'
import { fewFilesDispatcher, fewFilesGateway } from './few-open-files.ts'
import { forgedKeys } from './forged-keys.ts'
import { largestExample, longExampleList, nullFields, storedExampleList, storedNullFields } from './example-bodies.ts'
import { contentType, malformedHttp, slowBodies, unknownFields } from './http-requests.ts'
import { largePages, searches } from './lists.ts'
import { endlessModelAnswer, manyToolCalls, modelRedirect } from './model-answers.ts'
import { runnerKiller } from './runner-killer.ts'
import { slowEndpoint } from './slow-endpoint.ts'
import { sourceNames } from './source-names.ts'

/** All attacks, in the order in which `pnpm attack` runs them. */
export const ATTACKS: readonly Attack[] = [
  longExampleList,
  storedExampleList,
  largestExample,
  nullFields,
  storedNullFields,
  sourceNames,
  contentType,
  unknownFields,
  malformedHttp,
  slowBodies,
  forgedKeys,
  largePages,
  searches,
  slowEndpoint,
  fewFilesGateway,
  fewFilesDispatcher,
  runnerKiller,
  endlessModelAnswer,
  modelRedirect,
  manyToolCalls,
  ...APPLICATION_ATTACKS,
]
