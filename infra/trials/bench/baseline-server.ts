// The baseline of the API figures: a default Express 5 application that answers the same bytes.
// Usage: baseline-server.ts [FILE], where FILE has the bodies by name, as JSON.
import { readFileSync } from 'node:fs'
import { compile, WorkflowStartIn } from '@workflow-service/contract'
import express from 'express'

const [bodiesFile = ''] = process.argv.slice(2)
const bodies = (bodiesFile === '' ? {} : JSON.parse(readFileSync(bodiesFile, 'utf8'))) as Record<string, unknown>
const validateStart = compile(WorkflowStartIn)

const app = express()
app.get('/get', (_req, res) => {
  res.json({ ok: true })
})
app.get('/get/:name', (req, res) => {
  res.json(bodies[req.params.name])
})
app.post('/start', express.json(), (req, res) => {
  if (!validateStart(req.body)) {
    res.status(422).json({ errors: validateStart.errors })
    return
  }
  res.status(202).json(bodies['start'])
})
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : ''}\n`)
})
