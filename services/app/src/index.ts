/**
 * The application: people sign in, edit workflows and webhook sources, and read what happened. It serves the page and a
 * JSON API under `/app/`. It contacts no customer and holds no key of a signing secret: the dispatcher does.
 */
export { type AppConfig, AppSettings, readAppConfig } from './config.ts'
export { startApp } from './start-app.ts'
