#!/usr/bin/env bash
# Installs bubblewrap where it is missing and we may: what keeps evolved programs in their sandbox, and what its tests need.
set -euo pipefail
if command -v bwrap >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "bubblewrap (bwrap) is missing: install it with this system's package manager" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
install() { "${as_root[@]}" apt-get install --yes --no-install-recommends bubblewrap >/dev/null; }
install 2>/dev/null || { "${as_root[@]}" apt-get update >/dev/null && install; } || {
    echo "bubblewrap (bwrap) is missing and could not be installed: apt-get install bubblewrap, as root" >&2
    exit 1
}
