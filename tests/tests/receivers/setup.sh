#!/usr/bin/env bash
# setup.sh <folder> python|node [<pins>]: installs the libraries of one language into <folder>/<language>, in the
# versions and with the hashes that requirements.lock and package-lock.json pin: those beside this file, or in the
# folder <pins>. Does nothing if they are installed. The stamp is written last, so an interrupted installation is
# repeated. Exits with 3 if this machine lacks the language.
set -euo pipefail
here=${3:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
language=$2
folder=$1/$language
stamp=$folder/installed.sha256

# Tests that run at once want the same libraries; who comes second finds them installed.
mkdir -p "$1"
if command -v flock >/dev/null; then
  exec 9>"$1/$language.lock"
  flock 9
fi

missing() {
  echo "$1" >&2
  exit 3
}

# stamped <file>…: exits if the installed libraries match these files and this version of the language.
stamped() {
  wanted=$({ "$interpreter" --version && cat "$@"; } | sha256sum | cut -d' ' -f1)
  [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0
  rm -rf "$folder"
  mkdir -p "$folder"
}

case $language in
  python)
    interpreter=${PYTHON:-python3}
    command -v "$interpreter" >/dev/null || missing "$interpreter (3.11 or newer; set PYTHON to choose one)"
    "$interpreter" -c 'import venv, ensurepip' 2>/dev/null || missing "the module venv of $interpreter"
    stamped "$here/requirements.lock"
    "$interpreter" -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
      --requirement "$here/requirements.lock"
    ;;
  node)
    interpreter=node
    command -v node >/dev/null || missing "node (20 or newer)"
    command -v npm >/dev/null || missing "npm"
    stamped "$here/package-lock.json"
    cp "$here/package.json" "$here/package-lock.json" "$folder"
    npm ci --prefix "$folder" --no-audit --no-fund --loglevel=error
    ;;
  *)
    echo "usage: $0 <folder> python|node" >&2
    exit 2
    ;;
esac
echo "$wanted" >"$stamp"
