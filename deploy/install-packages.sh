#!/bin/sh
# Installs what is missing of the Debian packages that a purpose needs:
#   deploy/install-packages.sh build | test | all
# Does nothing, and needs neither root nor network, where all are there.
set -eu

build_packages="g++ cmake ninja-build pkg-config git ca-certificates curl
  prometheus-cpp-dev libcurl4-openssl-dev libcivetweb-dev libfmt-dev libcli11-dev libyaml-cpp-dev
  nlohmann-json3-dev zlib1g-dev liblzma-dev libzstd-dev libacl1-dev libsystemd-dev"
test_packages="libgtest-dev libgmock-dev libfuse3-dev fuse3 python3 prometheus
  prometheus-alertmanager systemd systemd-journal-remote yamllint procps mount
  gzip xz-utils zstd strace dbus-daemon python3-dbus python3-gi"
lint_packages="libbenchmark-dev clang clang-format clang-tidy libclang-rt-14-dev shellcheck"
# What the VM is built with and runs on; libelf1: the kernel's build tools link it.
vm_packages="qemu-system-x86 mmdebstrap busybox-static e2fsprogs kmod make gcc libelf1 xz-utils"

case "${1:-}" in
  build) wanted=$build_packages ;;
  test) wanted="$build_packages $test_packages" ;;
  all) wanted="$build_packages $test_packages $lint_packages $vm_packages" ;;
  *)
    echo "usage: $0 build|test|all" >&2
    exit 2
    ;;
esac

is_installed() {
  dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

missing=""
for package in $wanted; do
  is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "these packages are missing, and there is neither root nor sudo:$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi
echo "installing:$missing"
apt_get() {
  # shellcheck disable=SC2086  # as_root is one word or none
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
}
# The tests start Prometheus and Alertmanager themselves: as services they would be strangers here.
disable_services() {
  for service in prometheus prometheus-alertmanager; do
    case " $missing " in
      *" $service "*) $as_root systemctl disable --now --quiet "$service" 2>/dev/null || true ;;
    esac
  done
}

apt_get update
# shellcheck disable=SC2086  # the list is meant to be split
apt_get install -y --no-install-recommends $missing >/dev/null
disable_services
