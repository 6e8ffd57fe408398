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
    // Servers that decode "%2F" would find another path than that of the tool.
    if (inPath.includes(name) && /(?:^|[/\\])\.\.?(?:[/\\]|$)/.test(String(value)))
      throw new LookupArgumentsError(`${name} must not be "." or "..", or have one of them between slashes.`)
    values.set(name, encodeURIComponent(String(value).toWellFormed()))
  }
  const missing = [...new Set([...required, ...inPath])].find((name) => !values.get(name))
  if (missing !== undefined) throw new LookupArgumentsError(`${missing} is required and must not be empty.`)
  const url = new URL(base)
  // Encodes what the template has beyond ASCII, and the braces.
  url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`
  const wanted = url.pathname.replaceAll(/%7B(.*?)%7D/g, (all, name: string) => values.get(name) ?? all)
  url.pathname = wanted
  if (url.pathname !== wanted)
    throw new LookupArgumentsError('The parameters lead to another path than that of the tool.')
  const query = [...values].filter(([name]) => !inPath.includes(name)).map(([name, value]) => `${name}=${value}`)
  url.search = query.join('&')
  return url.href
}
