import { stopInfrastructure } from './global-setup.ts'

/** Jest's global teardown. */
export default stopInfrastructure
