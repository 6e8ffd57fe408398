/**
 * Every limit that the schemas and the services share (contract README, "Limits"). Lengths count Unicode code points.
 */

/** Context of a start, after trimming. */
export const CONTEXT_MAX_LENGTH = 10_000

/** Workflows or log entries on a page, unless the caller asks for another number. */
export const LIST_DEFAULT_LIMIT = 25
/** Workflows or log entries on a page at most. */
export const LIST_MAX_LIMIT = 100
/** Workflows on a page, as JSON in UTF-8. A page with one larger workflow is larger. */
export const LIST_PAGE_MAX_BYTES = 2 * 1024 * 1024
/** The longest period of which the usage is read. */
export const USAGE_MAX_DAYS = 92

/** Query parameter `search`. */
export const SEARCH_MAX_LENGTH = 200
/** Query parameter `cursor`. */
export const CURSOR_MAX_LENGTH = 512
/** Header `Idempotency-Key`. */
export const IDEMPOTENCY_KEY_MAX_LENGTH = 255

/** Name of a webhook source. */
export const WEBHOOK_SOURCE_NAME_MAX_LENGTH = 200
/** Description of a webhook source. */
export const WEBHOOK_SOURCE_DESCRIPTION_MAX_LENGTH = 10_000
/** Endpoint URL of a webhook source. */
export const ENDPOINT_URL_MAX_LENGTH = 2_000
/** Signing secret of a webhook source. */
export const SIGNING_SECRET_MAX_LENGTH = 1_000

/** Time for the answer to a verification request. */
export const VERIFICATION_DEADLINE_MS = 10_000
/** Time for the answer to a payload request. */
export const PAYLOAD_DEADLINE_MS = 30_000
/** Answer text that the agent can read. */
export const ANSWER_MAX_LENGTH = 300

/** Instructions of an organization for agents with a model. */
export const INSTRUCTIONS_MAX_LENGTH = 8_000
/** Versions of them that are kept. */
export const INSTRUCTION_VERSIONS_MAX = 50

/** Look-ups of an organization. */
export const LOOKUPS_MAX = 100
/** Their tools, as JSON in UTF-8: every run with a model reads all. Manifests of operators may exceed it. */
export const LOOKUPS_MAX_BYTES = 2 * 1024 * 1024
/** Tools of a look-up. */
export const LOOKUP_TOOLS_MAX = 20
/** Arguments of a call of a look-up, as compact JSON in UTF-8. */
export const LOOKUP_ARGUMENTS_MAX_BYTES = 8 * 1024
/** Time for the answer of a look-up. */
export const LOOKUP_DEADLINE_MS = 10_000
/** What is read of an answer of a look-up. */
export const LOOKUP_ANSWER_MAX_BYTES = 32 * 1024
/** Calls of look-ups in a run. */
export const LOOKUP_CALLS_PER_RUN = 20
/** What is read of all answers of look-ups in a run. */
export const LOOKUP_BYTES_PER_RUN = 256 * 1024

/** Example request body, as compact JSON in UTF-8. */
export const EXAMPLE_MAX_BYTES = 64 * 1024
/** Named fields in an example request body, those of nested objects and of every list item included. */
export const EXAMPLE_MAX_FIELDS = 500
/** Items of one list in an example request body. */
export const EXAMPLE_MAX_LIST_LENGTH = 100
/** Payload, as compact JSON in UTF-8. */
export const PAYLOAD_MAX_BYTES = 256 * 1024
/** Values in an example or a payload: objects, lists, and everything in them. */
export const PAYLOAD_MAX_VALUES = 20_000
/** Levels of objects and lists in an example or a payload; the body itself is level 1. */
export const PAYLOAD_MAX_DEPTH = 32

/** Field errors reported for one payload or example. */
export const MISMATCHES_MAX_COUNT = 20

/** Names in a manifest that have no limit of their own. */
export const NAME_MAX_LENGTH = 200
/** Email address of a user. */
export const EMAIL_MAX_LENGTH = 320
/** Slug of a trigger source or event, type of a subagent source, scope of a workflow. */
export const SLUG_MAX_LENGTH = 100
/** Name of a workflow or a trigger. */
export const WORKFLOW_NAME_MAX_LENGTH = 500
/** Description of a workflow or input message of a trigger. */
export const WORKFLOW_TEXT_MAX_LENGTH = 50_000
/** Triggers of a workflow, as JSON in UTF-8. Manifests of operators may exceed it. */
export const TRIGGERS_MAX_BYTES = 2 * 1024 * 1024
/** Names and folders of the files of a workflow, as JSON in UTF-8. Manifests of operators may exceed it. */
export const FILE_NAMES_MAX_BYTES = 512 * 1024
/** Name of a file or a folder. */
export const FILE_NAME_MAX_LENGTH = 255
/** Folders in the path of a file. */
export const FILE_PATH_MAX_DEPTH = 50
/** Content of a file in a manifest, in UTF-8. */
export const FILE_CONTENT_MAX_BYTES = 1024 * 1024

/** Content of a PDF or an image, which is 3 MiB in base64. */
export const FILE_MEDIA_CONTENT_MAX_LENGTH = 4 * 1024 * 1024
/** PDFs and images that a start refers to. */
export const ATTACHED_FILES_MAX = 10
/** Their bytes in all. */
export const ATTACHED_BYTES_MAX = 4 * 1024 * 1024
/** Pages of their PDFs in all. */
export const ATTACHED_PAGES_MAX = 100

/** A `rules.yaml`, in UTF-8. */
export const RULES_MAX_BYTES = 32 * 1024
/** Deliveries in a `rules.yaml`. */
export const RULES_MAX_DELIVERIES = 50
/** One expression in a `rules.yaml`. */
export const RULE_EXPRESSION_MAX_LENGTH = 2_000

/** A manifest that the application exports; `wf export` has no limit. */
export const MANIFEST_EXPORT_MAX_BYTES = 10 * 1024 * 1024
/** Field errors in one error response. */
export const ERROR_DETAILS_MAX = 100

/** Runs and payloads that wait, and payloads in a row that were not accepted: more of them are not counted. */
export const WAITING_COUNTED_MAX = 1_000
/** Runs that wait for an approval, as the overview counts them. */
export const OVERVIEW_WAITING_MAX = 200

/** How long a one-time link of each kind can be used. */
export const LINK_HOURS = { setup: 72, invitation: 72, reset: 1, email: 72 } as const

/** Password of an account; the shortest and the longest (contract README, "Application"). */
export const PASSWORD_MIN_LENGTH = 12
export const PASSWORD_MAX_LENGTH = 256

/** Body of a request to the application, in bytes, unless its operation allows more. */
export const APP_BODY_MAX_BYTES = 256 * 1024
/** Fields and list items in it. */
export const APP_BODY_MAX_MEMBERS = 1_000
/** The same before the sign-in: anybody may send such a body. */
export const STRANGER_BODY_MAX_BYTES = 16 * 1024
export const STRANGER_BODY_MAX_MEMBERS = 100
/**
 * Levels of objects and lists in any body that the application takes; an example in it has a lower limit of its own.
 */
export const APP_BODY_MAX_DEPTH = 64
/** Deliveries that a person selects to send them again. */
export const RESEND_IDS_MAX = 1_000

/** Days after which a payload without a decision counts as declined. */
export const APPROVAL_DAYS = 7
/** Reason for declining a payload. */
export const APPROVAL_REASON_MAX_LENGTH = 1_000

/** Cases of a workflow. */
export const CASES_MAX = 50
/** All cases of an organization, as PostgreSQL stores them. */
export const CASES_MAX_BYTES = 64 * 1024 * 1024
/** Payloads of a case. */
export const CASE_PAYLOADS_MAX = 50
/** All payloads of a case, as JSON in UTF-8. */
export const CASE_MAX_BYTES = 256 * 1024
/** Evaluations of a workflow that are kept. */
export const EVALUATIONS_KEPT = 20
/** What the evaluations of an organization that are kept found, as PostgreSQL stores it. */
export const EVALUATIONS_MAX_BYTES = 256 * 1024 * 1024
/** Evaluations of an organization that have not ended. */
export const EVALUATIONS_AT_ONCE = 5
