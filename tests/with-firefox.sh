#!/bin/sh
# Have Firefox and what drives it for the analyst's journey in evidence.service: Debian's firefox-esr, where it is missing
# and can be installed, and puppeteer-core from npm in the folder that PUPPETEER names (by default below the temporary
# directory). Without them this part of the evidence is left out, and says why.
set -eu

if ! command -v firefox-esr >/dev/null && ! command -v firefox >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Firefox from Debian's packages."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends firefox-esr; } >/dev/null 2>&1 || true
  fi
fi
PUPPETEER="${PUPPETEER:-${TMPDIR:-/tmp}/discreet-puppeteer}"
export PUPPETEER
if command -v npm >/dev/null && [ ! -d "$PUPPETEER/node_modules/puppeteer-core" ]; then
  echo "Installing puppeteer-core from npm."
  mkdir -p "$PUPPETEER"
  npm install --silent --no-fund --no-audit --prefix "$PUPPETEER" puppeteer-core@25.16.0 >/dev/null 2>&1 || true
fi
exec "$@"
