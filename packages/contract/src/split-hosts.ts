const URL_PARTS = /^([a-z][a-z\d+.-]*:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/i

/** Returns one URL for each host of a URL with several hosts, such as `postgres://user@one:5432,two:5432/name`. */
export function splitHosts(url: string): readonly [string, ...string[]] {
  const [, before = '', hosts = '', after = ''] = URL_PARTS.exec(url) ?? []
  const [first, ...others] = hosts.split(',').map((host) => `${before}${host.trim()}${after}`)
  return before === '' || first === undefined ? [url] : [first, ...others]
}
