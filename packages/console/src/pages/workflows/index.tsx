import { Page } from '../../components/page.tsx'

export function WorkflowsPage() {
  return <Page title="Workflows">{null}</Page>
}

export function NewWorkflowPage() {
  return <Page title="New workflow">{null}</Page>
}

export function WorkflowLayout() {
  return <Page title="Workflow">{null}</Page>
}

export function WorkflowEditPage() {
  return <Page title="Edit">{null}</Page>
}

export function WorkflowTriggersPage() {
  return <Page title="Triggers">{null}</Page>
}

export function WorkflowPeoplePage() {
  return <Page title="People">{null}</Page>
}

export function WorkflowFilesPage() {
  return <Page title="Files">{null}</Page>
}

export function WorkflowSchedulePage() {
  return <Page title="Schedule">{null}</Page>
}

export function WorkflowRunsPage() {
  return <Page title="Runs">{null}</Page>
}

export function WorkflowTryPage() {
  return <Page title="Try it">{null}</Page>
}
