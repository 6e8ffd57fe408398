import { findExampleErrors, type FieldError, type WebhookSourceIn } from '@workflow-service/contract'
import type { Rule } from '@workflow-service/service-kit'
import { checkUrl } from '../outbound/check-url.ts'
import type { Subnets } from '../outbound/parse-subnets.ts'
import { findInexactNumber } from './find-inexact-number.ts'

const EXAMPLE = 'example_request_body'

/** Creates the checks of a save beyond its schema: URL and example (contract README, "Webhook sources"). */
export function validateSource(allowed: Subnets): Rule<WebhookSourceIn, void> {
  return ({ endpoint_url: url, example_request_body: example }, { bodyText, violations }) => {
    const errors = [
      ...(url === undefined ? [] : urlErrors(url, allowed)),
      ...(example === undefined ? [] : findExampleErrors(example, EXAMPLE)),
    ]
    // Searches the whole text: only the example of an otherwise valid body can contain numbers.
    return errors.length + violations.length > 0 ? errors : numberErrors(bodyText)
  }
}

function urlErrors(url: string, allowed: Subnets): FieldError[] {
  const check = checkUrl(url, allowed)
  return check.isAllowed ? [] : [{ field: 'endpoint_url', code: check.code, message: check.message }]
}

function numberErrors(text: string): FieldError[] {
  const number = findInexactNumber(text)
  if (number === undefined) return []
  const message = `contains the number ${number}, which cannot be represented exactly: shorten it, or write it as a string`
  return [{ field: EXAMPLE, code: 'inexact_number', message }]
}
