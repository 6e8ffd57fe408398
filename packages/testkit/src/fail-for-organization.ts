import type { Pool } from 'pg'

/**
 * Makes statements fail that insert rows of an organization into a table or delete them, until the returned function is
 * called.
 */
export async function failForOrganization(
  pool: Pick<Pool, 'query'>,
  table: string,
  organizationId: string,
): Promise<() => Promise<void>> {
  await pool.query(
    `CREATE FUNCTION fail_for_organization() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF coalesce(OLD.organization_id, NEW.organization_id) = '${organizationId}' THEN RAISE 'The statement fails'; END IF;
       IF TG_OP = 'INSERT' THEN RETURN NEW; END IF;
       RETURN OLD;
     END $$;
     CREATE TRIGGER fail BEFORE INSERT OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION fail_for_organization()`,
  )
  return async () => void (await pool.query('DROP FUNCTION IF EXISTS fail_for_organization CASCADE'))
}
