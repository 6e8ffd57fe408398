import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  logLevel: 'warn',
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    // The content security policy allows images as data, but no inline scripts or styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    manifest: '.manifest.json',
    rolldownOptions: {
      output: {
        codeSplitting: {
          // A page with a list needs all of these: as files of their own they are 0.7 kB larger.
          groups: [{ name: 'list', test: /[/]components[/](?:data-list|filters|table)[.]tsx$/ }],
          includeDependenciesRecursively: false,
        },
      },
      // Of the parsers that CodeMirror's commands import nothing is used, and of `diff` only how it compares lines:
      // 9 kB.
      treeshake: {
        moduleSideEffects: [{ test: /@lezer|@codemirror[+/]language|[/]diff[/]libesm/, sideEffects: false }],
      },
    },
  },
  // `pnpm --filter @workflow-service/console dev` shows the page of a running `npm start` with hot reload.
  server: { proxy: { '/app': 'http://127.0.0.1:8083' } },
})
