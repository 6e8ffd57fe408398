export function findPnpm(version: string): { readonly version: string; readonly command: readonly string[] }
