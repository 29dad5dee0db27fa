#!/bin/sh
# Have Chromium for the tests of pages: Debian's package, where it is missing and can be installed. Without it these
# tests are left out, and say why.
set -eu

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exec "$@"; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing Chromium from Debian's packages."
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || true
fi
exec "$@"
