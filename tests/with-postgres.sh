#!/bin/sh
# Run a command with a PostgreSQL server of its own, which lives and dies with the command:
#
#     tests/with-postgres.sh .venv/bin/python -m pytest tests
#
# The command finds the server's address in DISCREET_TEST_POSTGRES. If that is set already, the server there is used.
# Where PostgreSQL is neither installed nor can be (Debian's packages, as root), the command runs without it and finds
# the reason in DISCREET_NO_POSTGRES.
set -eu

if [ -n "${DISCREET_TEST_POSTGRES:-}" ]; then
  exec "$@"
fi

# Debian keeps the server's programs out of the PATH; the newest version comes last.
programs() {
  ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1
  if command -v initdb >/dev/null; then dirname "$(readlink -f "$(command -v initdb)")"; fi
}

find_programs() {
  for place in $(programs); do
    if [ -x "$place/initdb" ] && [ -x "$place/pg_ctl" ] && [ -x "$place/postgres" ]; then
      echo "$place"
      return
    fi
  done
}

without() {
  echo "Tests of PostgreSQL are left out: $1" >&2
  DISCREET_NO_POSTGRES=$1
  export DISCREET_NO_POSTGRES
  shift
  exec "$@"
}

bin=$(find_programs)
if [ -z "$bin" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing PostgreSQL from Debian's packages."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null 2>&1 || true
    bin=$(find_programs)
  fi
  [ -n "$bin" ] || without "PostgreSQL is not installed, and could not be: install Debian's package postgresql." "$@"
fi

# Short, because the path of a socket may have 107 characters at most.
home=$(mktemp -d /tmp/discreet-postgres.XXXXXX)
# PostgreSQL refuses to run as root.
as=""
if [ "$(id -u)" = 0 ]; then
  chown postgres "$home"
  as="setpriv --reuid=postgres --regid=postgres --init-groups"
fi

# In a directory of its own that nobody else can enter, and without a port: trusting whoever gets in is safe here.
cd "$home"
settings="-c listen_addresses= -c unix_socket_directories=$home -c fsync=off -c max_connections=60 -c shared_buffers=64MB"
start() {
  $as "$bin/initdb" --pgdata="$home/data" --username=postgres --auth=trust --encoding=UTF8 --no-locale --no-sync &&
    $as "$bin/pg_ctl" start --wait --silent --pgdata="$home/data" --log="$home/log" --options="$settings"
}
stop() {
  $as "$bin/pg_ctl" stop --silent --mode=immediate --pgdata="$home/data" >/dev/null 2>&1 || true
  rm -rf "$home"
}
trap stop EXIT
trap 'exit 130' INT TERM
start >"$home/start" 2>&1 || { cat "$home/start" "$home/log" >&2 2>/dev/null; exit 1; }
cd - >/dev/null

DISCREET_TEST_POSTGRES="postgresql:///postgres?host=$home&user=postgres"
export DISCREET_TEST_POSTGRES
status=0
"$@" || status=$?
exit "$status"
