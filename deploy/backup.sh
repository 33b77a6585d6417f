#!/bin/sh
# Takes a backup into a directory named by the time, reads it back, and removes those older than two weeks.
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
# Only what is whole counts as a backup, so an unfinished one is never the last that is left.
find "$backups" -mindepth 1 -maxdepth 1 -type d -name '20*Z' -mtime "+$keep_days" -exec rm -rf {} +
