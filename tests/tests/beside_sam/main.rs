//! Ways to deploy that are not `sam deploy`, and who runs the commands of a repository: each is read or
//! run by the tool that its users have.

mod cdk;
mod terraform;
mod workflows;

use std::path::{Path, PathBuf};

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
