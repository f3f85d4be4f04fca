# Sourced by the scripts beside it, with the build folder as first argument. It defines the paths and keeps every tool
# away from the real AWS: invalid credentials, no profile, no telemetry, and no proxy for this machine's own addresses.
#
#   $build/release   the packed application                  $build/*.log   output of the emulated AWS, and who called what
#   $build/sam       what `sam build` packs                  $venv          the Python tools of tests/libraries

if [[ $# -lt 1 ]]; then
  echo "usage: $0 <build folder> …" >&2
  exit 2
fi

mkdir -p "$1"
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$(dirname "$build")/libraries/python/venv

export PATH="$venv/bin:$PATH"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
export SAM_CLI_TELEMETRY=0
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
unset AWS_PROFILE AWS_SESSION_TOKEN

# The functions run on this machine and are built for it.
case $(uname -m) in
  x86_64) architecture=x86_64 ;;
  aarch64 | arm64) architecture=arm64 ;;
  *)
    echo "Lambda does not support the architecture $(uname -m)" >&2
    exit 1
    ;;
esac
