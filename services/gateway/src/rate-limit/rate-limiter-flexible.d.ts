// The package's types name only its main module, which loads its 20 stores: 9 MiB instead of 3 MiB for the one in memory.
declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  export { RateLimiterMemory as default } from 'rate-limiter-flexible'
}
