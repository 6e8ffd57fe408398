#!/bin/sh
# docker-compose.yml mounts this file where the postgres image runs it once, on an empty data folder. It creates the
# services' role, which owns their database and is no superuser. The superuser gets no password, so that it can log in
# only through the socket inside the container: docker compose exec postgres psql --username postgres
set -e
psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres --dbname postgres <<'SQL'
CREATE ROLE workflow_service LOGIN PASSWORD :'password';
CREATE DATABASE workflow_service OWNER workflow_service;
ALTER ROLE postgres PASSWORD NULL;
SQL
