import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createLocalDir } from './local-settings.ts'

let folder: string
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'workflow-service-local-'))))
afterEach(async () => await rm(folder, { recursive: true, force: true }))

async function modeOf(...path: string[]): Promise<string> {
  return ((await stat(join(folder, ...path))).mode & 0o777).toString(8)
}

describe('the folder of the local stack', () => {
  test('is for its owner alone, also where an earlier version gave permissions to other users', async () => {
    const local = join(folder, '.local')
    await createLocalDir(local)
    expect([await modeOf('.local'), await modeOf('.local', 'logs')]).toEqual(['700', '700'])
    expect(await modeOf('.local', '.gitignore')).toBe('600')
    await writeFile(join(local, 'env'), '')
    await writeFile(join(local, 'logs', 'app.log'), '')
    for (const path of [local, join(local, 'logs')]) await chmod(path, 0o755)
    for (const path of ['.gitignore', 'env', 'logs/app.log']) await chmod(join(local, path), 0o644)
    await createLocalDir(local)
    const modes = { '.': '700', logs: '700', '.gitignore': '600', env: '600', 'logs/app.log': '600' }
    for (const [path, mode] of Object.entries(modes)) expect([path, await modeOf('.local', path)]).toEqual([path, mode])
  })

  test('keeps its permissions, and those of other files, if it was there before', async () => {
    await writeFile(join(folder, 'letter.txt'), 'dear …')
    await chmod(folder, 0o755)
    await chmod(join(folder, 'letter.txt'), 0o644)
    await createLocalDir(folder)
    await createLocalDir(folder)
    expect([await modeOf('.'), await modeOf('letter.txt'), await modeOf('logs')]).toEqual(['755', '644', '700'])
    expect(await readdir(folder)).toEqual(['letter.txt', 'logs'])
  })

  test('is refused where the system creates none', async () => {
    await expect(createLocalDir('/proc/none/local')).rejects.toThrow(
      /^The folder \/proc\/none\/local cannot be created/,
    )
  })
})
