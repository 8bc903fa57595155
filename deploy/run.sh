#!/bin/sh
# Builds the exporter and runs it in the foreground. Installs the packages that are missing, as root
# or through sudo. Arguments go to the exporter:
#   deploy/run.sh --web.listen-address=127.0.0.1:10151
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
"$root/deploy/install-packages.sh" build
cd "$root"
cmake --preset release -DAPU_BUILD_TESTS=OFF -B build/run >/dev/null
cmake --build build/run
cd "$OLDPWD"

address=localhost:10151
for argument in "$@"; do
  case "$argument" in
    --web.listen-address=:*) address="localhost:${argument##*:}" ;;
    --web.listen-address=*) address="${argument#*=}" ;;
  esac
done
cat <<TEXT

apu_exporter serves http://$address/metrics
try:    curl -s $address/metrics | grep -v '^#'
stop:   Ctrl-C

TEXT
exec "$root/build/run/apu_exporter" "$@"
