#!/usr/bin/env bash
# invoke.sh <build folder> <port> <function> <event>: invokes a function on the emulated AWS on that port and prints its
# response.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/invoke.py" "$3" "$4"
