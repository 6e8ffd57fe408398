import { useMe } from '../../api/index.ts'
import { showOnce } from '../../components/dialog.tsx'
import { Notice } from '../../components/page.tsx'
import { CopyBox } from '../../components/values.tsx'

/** Checks a service token without a package (contract README, "Service token"). A test runs it. */
const NODE_CHECK = `import { createHmac, timingSafeEqual } from 'node:crypto'

const FORM = /^(\\d{1,15})\\.([0-9a-f]{64})$/

// Answer 401 unless isAuthentic(request.headers['x-service-token'])
export function isAuthentic(token, secret = process.env.SIGNING_SECRET) {
  const text = Buffer.from(String(token), 'base64').toString()
  const [, time, signature] = FORM.exec(text) ?? []
  if (!secret || !time || Math.abs(Date.now() / 1000 - time) > 300) return false
  const hmac = createHmac('sha256', secret).update(time)
  return timingSafeEqual(hmac.digest(), Buffer.from(signature, 'hex'))
}`

/** Shows the signing secret of a source that was saved, with the code that checks it. */
export function showSecret(name: string, secret: string): void {
  showOnce({
    title: `Signing secret of ${name}`,
    className: 'wide',
    done: 'I stored it',
    children: (
      <>
        <Notice kind="warning">
          <p>
            The secret is not shown again after this dialog. Store it where your server reads its secrets, as{' '}
            <code>SIGNING_SECRET</code>.
          </p>
        </Notice>
        <CopyBox label="signing secret" text={secret} />
        <p>
          Each request has the header X-Service-Token, made with it. This checks one in Node.js. <HowToCheck />
        </p>
        <CopyBox label="code that checks the header" text={NODE_CHECK} />
      </>
    ),
  })
}

/** Leads to the check in other languages and as a package. */
export function HowToCheck() {
  const { api_url: apiUrl } = useMe()
  if (!apiUrl) return null
  return (
    <a href={`${apiUrl}/docs#receiving`} target="_blank" rel="noreferrer">
      How to check it in Express, Python and a shell
    </a>
  )
}
