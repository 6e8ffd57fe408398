/**
 * The runner: turns accepted starts into runs. It leases sessions, carries out their starts in order, keeps a journal of
 * every step, and starts what is scheduled. What a run does is the agent's; what leaves the service is the dispatcher's.
 */
export { readRunnerConfig, type RunnerConfig, RunnerSettings } from './config.ts'
export { type RunnerOverrides, type RunnerTiming, type RunningRunner, startRunner } from './start-runner.ts'
