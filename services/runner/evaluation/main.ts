// pnpm evaluate: see ../README.md, "Evaluation"
import { runEvaluate } from './run-evaluate.ts'

process.exitCode = await runEvaluate(process.argv.slice(2), process.env, {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
})
