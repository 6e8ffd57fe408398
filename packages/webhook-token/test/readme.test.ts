import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { checkServiceSignature, checkServiceToken } from '../src/index.js'

const readme = ['../README.md', '../OTHER_LANGUAGES.md']
  .map((path) => readFileSync(join(import.meta.dirname, path), 'utf8'))
  .join('\n')

const secret = 'whsec-example-3f9d1c7b5a2e8046'
const timestamp = 1_750_000_000

const folder = useTestFolder()
const hex = (text: string): string => Buffer.from(text, 'utf8').toString('hex')

/** One call of a snippet: a header, checked with a secret at a time. */
interface SnippetCall {
  header: string
  secret: string
  nowSeconds: number
  /** Of a signature: `header` is the one with it. */
  signed?: { id: string; timestamp: string; body: string }
}

/**
 * How to run the snippet of a language. `program` adds a main part to the snippet: it reads a secret (hex), a time and
 * a header (hex) from each line of standard input, separated by tabs, and prints yes or no. With three more columns
 * (hex) of the delivery's id, the timestamp and the body it checks the signature.
 */
interface Language {
  name: string
  command: string
  /** Arguments with which the command succeeds if the language is installed; default: --version. */
  probe?: string[]
  file: string
  program(snippet: string): string
  /** Arguments before the file. */
  args?: string[]
}

const languages: Language[] = [
  {
    name: 'Python',
    command: 'python3',
    file: 'check.py',
    program: (snippet) => `${snippet}
import sys
for line in sys.stdin:
    parts = line.rstrip("\\n").split("\\t")
    now = int(parts.pop(1))
    secret, header, *signed = map(bytes.fromhex, parts)
    if signed:
        ok = check_service_signature(signed[0].decode(), signed[1].decode(), header.decode(), signed[2], secret.decode(), now)
    else:
        ok = check_service_token(header.decode(), secret.decode(), now)
    print("yes" if ok else "no")
`,
  },
  {
    name: 'Java',
    command: 'java',
    // A single source file runs only with the compiler.
    probe: ['--describe-module', 'jdk.compiler'],
    file: 'ServiceToken.java',
    program: (snippet) =>
      snippet.replace(
        /\n\}\s*$/,
        `
  public static void main(String[] arguments) throws Exception {
    for (String line : new String(System.in.readAllBytes(), UTF_8).lines().toList()) {
      String[] parts = line.split("\\t", -1);
      String secret = new String(HexFormat.of().parseHex(parts[0]), UTF_8);
      String header = new String(HexFormat.of().parseHex(parts[2]), UTF_8);
      long now = Long.parseLong(parts[1]);
      boolean ok = parts.length == 3
          ? check(header, secret, now)
          : checkSignature(
              new String(HexFormat.of().parseHex(parts[3]), UTF_8), new String(HexFormat.of().parseHex(parts[4]), UTF_8),
              header, HexFormat.of().parseHex(parts[5]), secret, now);
      System.out.println(ok ? "yes" : "no");
    }
  }
}
`,
      ),
    args: ['-XX:TieredStopAtLevel=1'],
  },
  {
    name: 'Go',
    command: 'go',
    probe: ['version'],
    file: 'check.go',
    program: (snippet) => `${snippet
      .replace('package webhook', 'package main')
      .replace('import (', 'import (\n\t"bufio"\n\t"fmt"\n\t"os"')}
func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\\t")
		secret, _ := hex.DecodeString(parts[0])
		now, _ := strconv.ParseInt(parts[1], 10, 64)
		header, _ := hex.DecodeString(parts[2])
		ok := false
		if len(parts) == 3 {
			ok = CheckServiceToken(string(header), string(secret), time.Unix(now, 0))
		} else {
			id, _ := hex.DecodeString(parts[3])
			timestamp, _ := hex.DecodeString(parts[4])
			body, _ := hex.DecodeString(parts[5])
			ok = CheckServiceSignature(string(id), string(timestamp), string(header), body, string(secret), time.Unix(now, 0))
		}
		if ok {
			fmt.Println("yes")
		} else {
			fmt.Println("no")
		}
	}
}
`,
    args: ['run'],
  },
  {
    name: 'PHP',
    command: 'php',
    file: 'check.php',
    program: (snippet) => `${snippet}
while (($line = fgets(STDIN)) !== false) {
    [$secret, $now, $header, $id, $timestamp, $body] = [...explode("\\t", rtrim($line, "\\n")), null, null, null];
    $ok = $id === null
        ? checkServiceToken(hex2bin($header), hex2bin($secret), (int) $now)
        : checkServiceSignature(hex2bin($id), hex2bin($timestamp), hex2bin($header), hex2bin($body), hex2bin($secret), (int) $now);
    echo $ok ? "yes\\n" : "no\\n";
}
`,
  },
  {
    name: 'Ruby',
    command: 'ruby',
    file: 'check.rb',
    program: (snippet) => `${snippet}
STDIN.each_line do |line|
  parts = line.chomp.split("\\t", -1)
  now = Time.at(parts.delete_at(1).to_i)
  secret, header, id, timestamp, body = parts.map { |each| [each].pack("H*") }
  ok = id ? check_service_signature(id, timestamp, header, body, secret, now) : check_service_token(header, secret, now)
  puts ok ? "yes" : "no"
end
`,
  },
]

/** A snippet whose language or tools are not installed is not run; the name of a test lists it. */
const shellTools = ['bash', 'curl', 'openssl']
const missingTools = shellTools.filter(
  (tool) => spawnSync(tool, [tool === 'openssl' ? 'version' : '--version']).status !== 0,
)
const isInstalled = ({ command, probe = ['--version'] }: Language) => spawnSync(command, probe).status === 0

const installed = languages.filter(isInstalled)
const missing = [...languages.filter((each) => !isInstalled(each)).map(({ name }) => name), ...missingTools]

function runSnippet(language: Language, calls: SnippetCall[]): boolean[] {
  const file = join(folder, language.file)
  writeFileSync(file, language.program(readSnippet(language.name.toLowerCase())))
  const input = calls
    .map(({ secret: any, nowSeconds, header, signed }) => {
      const more = signed ? [signed.id, signed.timestamp, signed.body].map(hex) : []
      return `${[hex(any), nowSeconds, hex(header), ...more].join('\t')}\n`
    })
    .join('')
  const { stdout, stderr, status } = spawnSync(language.command, [...(language.args ?? []), file], {
    input,
    encoding: 'utf8',
    env: { ...process.env, GOCACHE: join(folder, 'go-cache'), GOFLAGS: '-mod=mod', GO111MODULE: 'off' },
  })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => line === 'yes')
}

const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')

function readSnippet(fence: string, contains = ''): string {
  const blocks = [...readme.matchAll(/```(\w+)\n([^]*?)```/gu)]
  const block = blocks.find((match) => match[1] === fence && match[2]?.includes(contains))
  if (block?.[2] === undefined) throw new Error(`The documents have no ${fence} snippet`)
  return block[2]
}

/** A cell of the tables of the test vectors. */
const cell = (name: string): string => new RegExp(`\\| ${name} +\\| \`([^\`]+)\` +\\|`).exec(readme)?.[1] ?? ''

describe('the documents', () => {
  const skipped = missing.length === 0 ? '' : `; not installed and not run: ${missing.join(', ')}`
  test(`shows the check in ${languages.length} languages; run here: ${installed.map(({ name }) => name).join(', ')}${skipped}`, () => {
    for (const { name } of languages) expect(readSnippet(name.toLowerCase())).toMatch(/sha256/iu)
  })

  test('publish a valid token and a valid signature of a body', async () => {
    const clock = { now: () => timestamp * 1000 }
    expect(cell('secret')).toBe(secret)
    expect(Buffer.from(cell('token'), 'base64').toString()).toBe(`${timestamp}.${cell('signature')}`)
    expect(await checkServiceToken(cell('token'), secret, clock)).toEqual({ ok: true, timestamp })
    const headers = {
      'x-delivery-id': cell('id'),
      'x-service-timestamp': cell('timestamp'),
      'x-service-signature': cell('header'),
    }
    expect(await checkServiceSignature(headers, cell('body'), secret, clock)).toMatchObject({ ok: true })
  })
})

if (missingTools.length === 0)
  test('the shell commands send a valid token and a valid signature', async () => {
    await using endpoint = await startCustomerEndpoint()
    // Asynchronous, because the child calls a server of this process.
    const child = spawn('bash', ['-euc', readSnippet('bash')], {
      env: {
        ...process.env,
        SIGNING_SECRET: secret,
        ENDPOINT_URL: endpoint.url,
        NO_PROXY: '*',
      },
    })
    const status = await new Promise((resolve) => child.once('close', resolve))
    expect(status).toBe(0)
    const { headers, text } = endpoint.requests[0]!
    expect(await checkServiceToken(headers['x-service-token'], secret)).toMatchObject({ ok: true })
    expect(await checkServiceSignature(headers, text, secret)).toMatchObject({ ok: true })
    expect(headers['content-type']).toBe('application/json')
  })

/** What this package says of the call. */
async function isAccepted({ header, secret: any, nowSeconds, signed }: SnippetCall): Promise<boolean> {
  const clock = { now: () => nowSeconds * 1000 }
  // This package throws.
  if (any === '') return false
  if (!signed) return (await checkServiceToken(header, any, clock)).ok
  const headers = new Map([
    ['X-Delivery-Id', signed.id],
    ['X-Service-Timestamp', signed.timestamp],
    ['X-Service-Signature', header],
  ])
  return (await checkServiceSignature(headers, signed.body, any, clock)).ok
}

/** The test vector, the first three of which are valid, with wrong ages and malformed headers. */
function tokenCalls(): SnippetCall[] {
  const sign = (key: string) => createHmac('sha256', key).update(String(timestamp)).digest('hex')
  const signature = sign(secret)
  const vector = base64(`${timestamp}.${signature}`)
  const malformed = [
    `${timestamp}${signature}`,
    `${timestamp}.`,
    `.${signature}`,
    `+${timestamp}.${signature}`,
    `-${timestamp}.${signature}`,
    `x.${signature}`,
    `${timestamp}.${signature.slice(1)}`,
    `${timestamp}.${signature.toUpperCase()}`,
    `${timestamp}.${signature}.`,
    `${'9'.repeat(400)}.${signature}`,
  ]
  const now = { header: vector, secret, nowSeconds: timestamp }
  return [
    ...[0, 300, -300, 301, -301].map((drift) => ({ ...now, nowSeconds: timestamp + drift })),
    { ...now, secret: 'another secret' },
    { ...now, header: base64(`${timestamp}.${sign('')}`), secret: '' },
    ...[...malformed.map(base64), '', 'not Base64!', '\u00e4'].map((header) => ({ ...now, header })),
  ]
}

/** The signature of a body in the documents, of which four calls are valid, with everything that can be wrong. */
function signatureCalls(): SnippetCall[] {
  const [id, body, header] = [cell('id'), cell('body'), cell('header')]
  const valid = { id, timestamp: String(timestamp), body }
  const unsigned = createHmac('sha256', '').update(`${id}.${timestamp}.${body}`)
  const call = (change: Partial<SnippetCall>, signed: Partial<typeof valid> = {}): SnippetCall => ({
    header,
    secret,
    nowSeconds: timestamp,
    ...change,
    signed: { ...valid, ...signed },
  })
  return [
    ...['', 'v1,AAAA '].map((before) => call({ header: `${before}${header}` })),
    ...[-301, -300, 300, 301].map((drift) => call({ nowSeconds: timestamp + drift })),
    ...['', 'v1,', header.slice(3), header.replace('v1', 'v2'), `${header}=`, '\u00e4'].map((wrong) =>
      call({ header: wrong }),
    ),
    call({ secret: 'another secret' }),
    call({ secret: '', header: `v1,${unsigned.digest('base64')}` }),
    ...[{ body: `${body} ` }, { body: '' }, { id: `${id}0` }, { id: '' }].map((signed) => call({}, signed)),
    ...['', `${timestamp + 1}`, `+${timestamp}`, `-${timestamp}`, `${timestamp}\n`, '9'.repeat(400)].map((wrong) =>
      call({}, { timestamp: wrong }),
    ),
  ]
}

// All in one process of each language: Go and Java compile in it.
test.each(installed)('the snippet in $name accepts what this package accepts, and nothing else', async (language) => {
  const parts = [tokenCalls(), signatureCalls()]
  const expected = await Promise.all(parts.map((calls) => Promise.all(calls.map(isAccepted))))
  expect(expected.map((each) => each.filter(Boolean).length)).toEqual([3, 4])
  expect(runSnippet(language, parts.flat())).toEqual(expected.flat())
})
