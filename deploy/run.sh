#!/bin/sh
# Builds the exporter and runs it in the foreground. Installs the packages that are missing, as root
# or through sudo. Arguments go to the exporter:
#   deploy/run.sh --web.listen-address=127.0.0.1:10151
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
"$root/deploy/install-packages.sh" build >&2
cd "$root"
cmake --preset release -DAPU_BUILD_TESTS=OFF -B build/run >/dev/null
cmake --build build/run >&2
cd "$OLDPWD"

serves=yes
address=localhost:10151
for argument in "$@"; do
  case "$argument" in
    --once | --help | -h | --version) serves=no ;;
    --web.listen-address=:*) address="localhost:${argument##*:}" ;;
    --web.listen-address=*) address="${argument#*=}" ;;
  esac
done
if [ "$serves" = yes ]; then
  cat >&2 <<TEXT

apu_exporter will serve http://$address/metrics
try:    curl -s $address/metrics | grep -v '^#'
stop:   Ctrl-C

TEXT
fi
exec "$root/build/run/apu_exporter" "$@"
