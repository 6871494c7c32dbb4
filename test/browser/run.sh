#!/bin/sh
# The tests of the status page in a real browser, after setup.sh. A Chromium (300 MB) is only installed here: npm test needs none.
# CHROMIUM names another one.

find_chromium() {
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name" 2>/dev/null; then return; fi
  done
}

chromium=$(find_chromium)
if [ -z "$chromium" ] && command -v apt-get >/dev/null 2>&1; then
  echo "test:browser: installing Debian's chromium (once)" >&2
  sudo=
  if [ "$(id -u)" != 0 ]; then sudo="sudo -n"; fi
  $sudo apt-get update -qq >/dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1
  chromium=$(find_chromium)
fi
if [ -z "$chromium" ]; then
  echo "test:browser: a Chromium is needed and could not be installed; install one (apt-get install chromium), or name one in CHROMIUM, and try again." >&2
  exit 1
fi
exec env CHROMIUM="$chromium" BROWSER=1 vitest run --config test/vitest.config.ts "$@"
