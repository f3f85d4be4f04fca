#!/usr/bin/env bash
# sam-build.sh <build folder>: `sam build` of template.yaml into <build folder>/sam, as users build it, but for this machine and
# without optimisation. Prints the path of each function's program.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

# The host's linker instead of zig: there is no other platform to link for.
export CARGO_LAMBDA_COMPILER=cargo SAM_BUILD_MODE=debug
# A folder of its own: cargo-lambda names a target, so it shares no build output with `cargo test`.
export CARGO_TARGET_DIR=$build/cargo

cd "$root"
mkdir -p "$build/sources/infra"
cp infra/observability.yaml "$build/sources/infra"
sed "s/Architectures: \[arm64\]/Architectures: [$architecture]/" template.yaml >"$build/sources/template.yaml"
sam build --template-file "$build/sources/template.yaml" --base-dir "$root" --build-dir "$build/sam" >&2
ls "$build"/sam/*/bootstrap
