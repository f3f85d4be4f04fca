#!/usr/bin/env bash
# calls.sh <build folder> <port> <calls> [<stack>]: makes calls of the emulated AWS on that port with the permissions of
# roles, those of the stack lastmile unless another is named, and prints the error code of each, or null, as a JSON list.
# calls.py says what a call is.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/calls.py" "${4:-lastmile}" "$3"
