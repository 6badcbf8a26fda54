#!/usr/bin/env bash
# What an installed wheel brings with it: written into dist/ as a software bill of materials (CycloneDX, JSON), and with
# --audit looked up in the database of known vulnerabilities of PyPI, which needs the network.
#   tools/list_dependencies.sh [--audit]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
wheel=$(echo "$root"/dist/flowevolve-*.whl)
[ -f "$wheel" ] || { echo "error: no wheel in dist/; make wheel builds it" >&2; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/tools"
"$folder/tools/bin/pip" install --quiet --disable-pip-version-check --constraint "$root/tools/audit.txt" cyclonedx-bom pip-audit
"$python" -m venv --without-pip "$folder/venv"
"$folder/tools/bin/pip" --python "$folder/venv" install --quiet --disable-pip-version-check \
  --constraint "$root/constraints.txt" "$wheel"

list="${wheel%-py3-none-any.whl}.cdx.json"
"$folder/tools/bin/cyclonedx-py" environment "$folder/venv" --output-format JSON --output-file "$list"
echo "$(basename "$list"): $("$folder/tools/bin/pip" --python "$folder/venv" list --format freeze | wc -l) packages"
if [ "${1:-}" = --audit ]; then
  "$folder/tools/bin/pip-audit" --strict --path "$("$folder/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')"
fi
