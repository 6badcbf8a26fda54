#!/usr/bin/env bash
# install_package.sh COMMAND PACKAGE: installs a package of Debian where its command is missing and we may.
set -euo pipefail
command=$1 package=$2
if command -v "$command" >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "$package ($command) is missing: install it with this system's package manager" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
install() { "${as_root[@]}" apt-get install --yes --no-install-recommends "$package" >/dev/null; }
install 2>/dev/null || { "${as_root[@]}" apt-get update >/dev/null && install; } || {
    echo "$package ($command) is missing and could not be installed: apt-get install $package, as root" >&2
    exit 1
}
