import { Page } from '../../components/page.tsx'

export function SetUpPage() {
  return <Page title="Set up">{null}</Page>
}

export function SignInPage() {
  return <Page title="Sign in">{null}</Page>
}

export function LinkPage() {
  return <Page title="Link">{null}</Page>
}
