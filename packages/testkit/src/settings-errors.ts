/** Returns the errors with which settings are refused; none if they are read. */
export function settingsErrors(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    const { name, errors } = error as { name?: string; errors?: readonly string[] }
    if (name !== 'SettingsError' || !errors) throw error
    return errors
  }
}
