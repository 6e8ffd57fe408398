import {
  findExampleErrors,
  type FieldError,
  findInexactNumberErrors,
  type WebhookSourceIn,
} from '@workflow-service/contract'
import type { Rule } from '@workflow-service/service-kit'
import { checkUrl } from '../outbound/check-url.ts'
import type { Subnets } from '../outbound/parse-subnets.ts'

const EXAMPLE = 'example_request_body'

/** Creates the checks of a save beyond its schema: URL and example (contract README, "Webhook sources"). */
export function validateSource(allowed: Subnets): Rule<WebhookSourceIn, void> {
  return ({ endpoint_url: url, example_request_body: example }, { bodyText, violations }) => {
    const errors = [
      ...(url === undefined ? [] : urlErrors(url, allowed)),
      ...(example === undefined ? [] : findExampleErrors(example, EXAMPLE)),
    ]
    // Searches the whole text: only the example of an otherwise valid body can contain numbers.
    return errors.length + violations.length > 0 ? errors : findInexactNumberErrors(bodyText, EXAMPLE)
  }
}

function urlErrors(url: string, allowed: Subnets): FieldError[] {
  const check = checkUrl(url, allowed)
  return check.isAllowed ? [] : [{ field: 'endpoint_url', code: check.code, message: check.message }]
}
