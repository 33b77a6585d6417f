#!/bin/sh
# Takes a backup and verifies it. Settings come from the environment, as for the server.
#
#   BACKUP_TO=s3://bucket/prefix sh deploy/backup.sh        into a bucket, encrypted with QUARRY_BACKUP_KEY
#   sh deploy/backup.sh /var/lib/quarry-backups             into a directory named after the time
#
# BACKUP_KEEP backups stay (14).
set -eu
keep=${BACKUP_KEEP:-14}
here=$(cd "$(dirname "$0")/.." && pwd)
quarry() { node "$here/bin/quarry.js" "$@"; }

if [ -n "${BACKUP_TO:-}" ]; then
  quarry backup --to "$BACKUP_TO" --keep "$keep"
  quarry backup verify "$BACKUP_TO"
  exit
fi
backups=$1
name=$backups/$(date -u +%Y-%m-%dT%H%M%SZ)
quarry backup "$name"
quarry backup verify "$name"
# Names sort by time. Only complete backups have one.
find "$backups" -mindepth 1 -maxdepth 1 -type d -name '20*Z' | sort -r | tail -n "+$((keep + 1))" | while read -r old; do
  rm -rf "$old"
done
