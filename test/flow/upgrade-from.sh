#!/bin/sh
# Runs the rolling upgrade test between the version of REF (a tag, a branch, a commit) and this checkout, in both directions, for which both
# need the same format of what is stored (`store/connection/state-format.ts`):
#   sh test/flow/upgrade-from.sh HEAD~9
set -eu
cd "$(dirname "$0")/../.."
if [ $# -ne 1 ]; then
  echo "usage: sh test/flow/upgrade-from.sh REF" >&2
  exit 2
fi
. ./setup.sh
previous=$(mktemp -d)
trap 'rm -rf "$previous"' EXIT
trap 'exit 130' INT TERM
git archive "$1" >"$previous/files.tar"
tar -xf "$previous/files.tar" -C "$previous"
(cd "$previous" && npm ci --omit=dev --no-audit --no-fund --loglevel=error)
PREVIOUS=$previous npx vitest run --config test/vitest.config.ts test/flow/rolling-upgrade.test.ts
