#!/bin/sh
# Starts Chromium, and passes connections from outside on to its debugging port. Ends when either of them ends.
set -eu
socat "TCP-LISTEN:${PORT:-9222},fork,reuseaddr" TCP:127.0.0.1:9229 &
socat=$!
chromium --headless --no-sandbox --remote-debugging-port=9229 --user-data-dir="$(mktemp -d)" \
  --no-startup-window --no-first-run --webrtc-ip-handling-policy=disable_non_proxied_udp \
  --disable-background-networking --disable-component-update --disable-sync --disable-gpu --disable-dev-shm-usage \
  --js-flags=--max-old-space-size=512 &
chromium=$!
trap 'kill "$socat" "$chromium"; exit 0' TERM INT
while kill -0 "$socat" && kill -0 "$chromium"; do sleep 1; done 2>/dev/null
kill "$socat" "$chromium" 2>/dev/null
exit 1
