#!/bin/bash
# Builds what the VM tests boot, once, and prints the folder in which it is:
#   tests/vm/build_image.sh EXPORTER [CACHE]     CACHE: build/vm by default
#     vmlinuz, initrd.gz   Debian's cloud kernel, and an initramfs that puts the payload into the root
#     root.img             a minimal system with the libraries that the exporter needs
#     headers              what a module for that kernel is built with
# Nothing of the exporter is in it and nothing is installed on this machine; packages come from
# where apt of this machine gets them. A change of this file or of the exporter's libraries builds
# anew. Exit code 77: cannot be built here, and says why.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

readonly root_packages=systemd,systemd-sysv,udev,dbus,kmod,procps,passwd,python3-minimal
readonly image_size=1200M
# What disturbs a short life: jobs by the clock, and a login prompt on the console.
readonly masked_units="apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer
  e2scrub_all.timer e2scrub_reap.service systemd-tmpfiles-clean.timer
  getty@tty1.service serial-getty@ttyS0.service"

cannot_build() {
  echo "cannot run here: $*" >&2
  exit 77
}

# --- what there is to build from

check_machine() {
  local program
  [ "$(id -u)" -eq 0 ] || cannot_build "building the VM's image needs root"
  [ "$(uname -m)" = x86_64 ] || cannot_build "the VM is an x86_64 one"
  for program in qemu-system-x86_64 mmdebstrap busybox mke2fs depmod modprobe apt-get dpkg-deb xz make gcc; do
    [ -n "$(type -P "$program")" ] || cannot_build "$program is not installed"
  done
  unshare --mount --propagation unchanged true 2>/dev/null ||
    cannot_build "building the VM's image needs the right to mount"
}

# The release of this machine, as the exporter's libraries are those of this machine.
suite() {
  # shellcheck source=/dev/null
  (. /etc/os-release && echo "${VERSION_CODENAME:-}")
}

# Old lists name packages that the mirror has no more.
update_package_lists() {
  apt-get -qq update >&2 || true
  apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 ||
    cannot_build "apt knows no linux-image-cloud-amd64"
}

# Debian's own lines of this machine's apt sources.
package_sources() {
  apt-get indextargets --format "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' 'Origin: Debian' | sort -u
}

# The proxies of this machine's apt, as configuration for another.
proxies() {
  apt-config dump --format '%f "%v";%n' | grep -i '^Acquire::[a-z]*::Proxy' || true
}

# The package that a file comes from; it may name it below /usr or not.
package_of() {
  local path
  for path in "$1" "/usr$1" "${1#/usr}"; do
    if dpkg-query --search "$path" 2>/dev/null | sed 's/[:,].*//'; then return 0; fi
  done
  echo "no package has $1, which the exporter needs" >&2
  return 1
}

# The packages that the libraries of a program come from.
library_packages() {
  local library
  ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | while read -r library; do
    package_of "$library"
  done | sort -u | paste -sd,
}

# --- the kernel

kernel_release() {
  apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: linux-image-\(.*\)/\1/p' | head -n 1
}

# kbuild of the headers' series, "6.1" of "6.1.0-57-cloud-amd64"
kernel_series() {
  cut -d. -f1,2 <<<"$1"
}

download_kernel() {
  local release=$1 folder=$2
  mkdir "$folder"
  (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "linux-image-$release" \
    "linux-headers-$release" "linux-headers-${release%-cloud-amd64}-common" \
    "linux-kbuild-$(kernel_series "$release")" >&2) ||
    cannot_build "the kernel's packages cannot be downloaded"
}

unpack() {
  local target=$1 package
  shift
  mkdir -p "$target"
  for package in "$@"; do
    dpkg-deb -x "$package" "$target"
  done
}

# The headers name each other by where their packages put them.
unpack_headers() {
  local release=$1 packages=$2 target=$3
  unpack "$target" "$packages"/linux-headers-*.deb "$packages"/linux-kbuild-*.deb
  sed -i "s|^include /usr/src/|include \$(dir \$(abspath \$(lastword \$(MAKEFILE_LIST))))../|" \
    "$target/usr/src/linux-headers-$release/Makefile"
  ln -s "usr/src/linux-headers-$release" "$target/build"
}

# --- the initramfs: loads what the disk needs, unpacks the payload over the root, goes there

write_init() {
  cat <<'INIT'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t ext4 /dev/vda /newroot
tar -x -f /dev/vdb -C /newroot
mount --move /dev /newroot/dev
umount /sys /proc
exec switch_root /newroot /sbin/init
INIT
}

# The modules of the disk and its file system, each after those that it needs.
initramfs_modules() {
  local kernel=$1 release=$2 module
  for module in virtio_pci virtio_blk ext4; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++'
}

build_initramfs() {
  local kernel=$1 release=$2 output=$3 tree module name
  tree=$kernel/initramfs
  mkdir -p "$tree"/{bin,dev,proc,sys,newroot,modules}
  cp "$(type -P busybox)" "$tree/bin/busybox"
  for name in sh mount umount insmod tar switch_root; do
    ln -s busybox "$tree/bin/$name"
  done
  depmod -b "$kernel" "$release"
  initramfs_modules "$kernel" "$release" | while read -r module; do
    name=$(basename "${module%.xz}")
    if [ "$module" = "${module%.xz}" ]; then cp "$module" "$tree/modules/$name"; else
      xz -dc "$module" >"$tree/modules/$name"
    fi
    echo "$name" >>"$tree/modules/order"
  done
  write_init >"$tree/init"
  chmod 755 "$tree/init"
  (cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$output"
}

# --- the root

build_root() {
  local packages=$1 apt=$2 target=$3
  mkdir "$apt"
  package_sources >"$apt/sources.list"
  proxies >"$apt/proxies.conf"
  mmdebstrap --quiet --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --aptopt="$apt/proxies.conf" "$(suite)" "$target" "$apt/sources.list" >&2
}

prepare_root() {
  local root=$1 unit
  # With an identity it is no first boot, which would ask questions and go through all presets.
  echo a9c0ffee000000000000000000000001 >"$root/etc/machine-id"
  for unit in $masked_units; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
}

# --- all of it

build() {
  local release=$1 target=$2 packages=$3
  local work=$target.work
  rm -rf "$work"
  mkdir -p "$work/image"
  download_kernel "$release" "$work/packages"
  unpack "$work/kernel" "$work/packages/linux-image-$release"_*.deb
  unpack_headers "$release" "$work/packages" "$work/image/headers"
  cp "$work/kernel/boot/vmlinuz-$release" "$work/image/vmlinuz"
  build_initramfs "$work/kernel" "$release" "$work/image/initrd.gz"
  build_root "$packages" "$work/apt" "$work/root"
  prepare_root "$work/root"
  cp -r "$work/kernel/lib/modules" "$work/root/lib/"
  mke2fs -q -t ext4 -d "$work/root" "$work/image/root.img" "$image_size" >&2
  # In one step, so that a build that was cut off is none.
  mv "$work/image" "$target"
  rm -rf "$work"
}

main() {
  local exporter=$1 cache=$2 packages key target
  check_machine
  packages=$root_packages,$(library_packages "$exporter")
  key=$( (cat "$0" && echo "$packages" && suite) | sha256sum | cut -c1-16)
  target=$cache/image-$key
  if [ ! -d "$target" ]; then
    update_package_lists
    rm -rf "$cache"/image-*
    mkdir -p "$cache"
    build "$(kernel_release)" "$target" "$packages"
  fi
  echo "$target"
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 EXPORTER [CACHE]" >&2
  exit 2
fi
main "$1" "${2:-$(cd "$(dirname "$0")/../.." && pwd)/build/vm}"
