import { Pool } from 'pg'

const CONNECTIONS = 16

/** Measures how many inserts of one row PostgreSQL commits per second: 16 connections, named statements. */
export async function singleRowCommitsPerSecond(databaseUrl: string, seconds: number): Promise<number> {
  const pool = new Pool({ connectionString: databaseUrl, max: CONNECTIONS })
  await pool.query('CREATE TABLE IF NOT EXISTS bench_rows (id uuid PRIMARY KEY, text text NOT NULL)')
  const endsAt = performance.now() + seconds * 1_000
  let commits = 0
  const insertUntilEnd = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      await pool.query({ name: 'bench', text: `INSERT INTO bench_rows VALUES (gen_random_uuid(), 'row')` })
      commits += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, insertUntilEnd))
  await pool.query('DROP TABLE bench_rows')
  await pool.end()
  return commits / seconds
}
