#!/bin/sh
# Takes a backup into a directory named after the time, verifies it, and deletes backups older than two weeks.
# Settings come from the environment, as for the server: sh deploy/backup.sh /var/lib/quarry-backups
set -eu
backups=$1
keep_days=${KEEP_DAYS:-14}
here=$(cd "$(dirname "$0")/.." && pwd)
node=$here/node_modules/.bin/node
[ -x "$node" ] || node=node
quarry() { "$node" "$here/src/main.ts" "$@"; }
name=$backups/$(date -u +%Y-%m-%dT%H%M%SZ)

quarry backup "$name"
quarry backup verify "$name"
# Only complete backups count, so that the last one left is never an unfinished one.
find "$backups" -mindepth 1 -maxdepth 1 -type d -name '20*Z' -mtime "+$keep_days" -exec rm -rf {} +
