#!/bin/sh
# Runs once, on an empty data folder (docker-compose.yml mounts it where the postgres image looks). The services get a role
# that owns their database and is no superuser; the superuser is left without a password, so that it can only come in
# through the container's own socket: docker compose exec postgres psql --username postgres
set -e
psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres --dbname postgres <<'SQL'
CREATE ROLE workflow_service LOGIN PASSWORD :'password';
CREATE DATABASE workflow_service OWNER workflow_service;
ALTER ROLE postgres PASSWORD NULL;
SQL
