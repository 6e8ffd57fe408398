import { isOfType, listPathParameters, type LookupParameter, type LookupTool } from '@workflow-service/contract'

/** Arguments that the tool does not take. The message is for the model, which may correct them. */
export class LookupArgumentsError extends Error {
  override name = 'LookupArgumentsError'
}

/**
 * Returns the URL of a call: the look-up's URL, the tool's path with its parameters, and the others as the query.
 * @throws LookupArgumentsError
 */
export function toLookupUrl(base: string, { path = '', parameters = {} }: LookupTool, args: object): string {
  const { properties = {}, required = [] } = parameters as {
    properties?: Record<string, LookupParameter>
    required?: readonly string[]
  }
  const inPath = listPathParameters(path)
  const values = new Map<string, string>()
  for (const [name, value] of Object.entries(args)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!schema) throw new LookupArgumentsError(`There is no parameter ${JSON.stringify(name.slice(0, 100))}.`)
    // Models write null for what they leave out.
    if (value === null && !required.includes(name) && !inPath.includes(name)) continue
    if (!isOfType(value, schema.type)) throw new LookupArgumentsError(`${name} must be of the type ${schema.type}.`)
    if (schema.enum && !schema.enum.includes(value)) {
      throw new LookupArgumentsError(
        `${name} must be one of ${schema.enum.map((each) => JSON.stringify(each)).join(', ')}.`,
      )
    }
    values.set(name, encodeURIComponent(String(value).toWellFormed()))
  }
  const missing = [...new Set([...required, ...inPath])].find((name) => !values.get(name))
  if (missing !== undefined) throw new LookupArgumentsError(`${missing} is required and must not be empty.`)
  const url = new URL(base)
  const wanted = `${url.pathname.replace(/\/$/, '')}${path.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => values.get(name)!)}`
  url.pathname = wanted
  // "." and ".." would lead to another path than that of the tool.
  if (url.pathname !== wanted) throw new LookupArgumentsError('A parameter of the path must not be "." or "..".')
  const query = [...values].filter(([name]) => !inPath.includes(name)).map(([name, value]) => `${name}=${value}`)
  url.search = query.join('&')
  return url.href
}
