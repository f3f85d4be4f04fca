//! Libraries in Python and Node that tests need: one environment of each, installed on first use into cargo's target folder.
//!
//! `tests/libraries` pins their versions. The tests of the command line include this file, so it uses `std` only.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The exit status of `tests/libraries/install` if this machine lacks the language.
const MISSING: i32 = 3;

/// The Python interpreter that has the libraries. Without Python it is `None`, and `test` is reported as skipped.
///
/// # Panics
/// If the installation fails.
pub fn python(test: &str) -> Option<PathBuf> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| install("python"));
    let folder = FOLDER.as_ref().map_err(|missing| skipped(test, missing)).ok()?;
    Some(folder.join("venv/bin/python"))
}

/// The folder that has `node_modules`. Without Node it is `None`, and `test` is reported as skipped.
///
/// # Panics
/// If the installation fails.
pub fn node(test: &str) -> Option<PathBuf> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| install("node"));
    FOLDER.as_ref().map_err(|missing| skipped(test, missing)).ok().cloned()
}

/// Prints that a test did not run, past the test harness, which captures standard error.
///
/// # Panics
/// If standard error is closed.
pub fn skipped(test: &str, missing: &str) {
    let line = format!("SKIPPED: {test}: {missing} is not on this machine\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is writable");
}

/// The folder of a language; an error names what this machine lacks.
fn install(language: &str) -> Result<PathBuf, String> {
    let libraries = target_folder().join("libraries");
    let mut install = Command::new(root().join("tests/libraries/install"));
    install.arg(&libraries).arg(language).stdin(Stdio::null());
    let done = install.output().expect("tests/libraries/install starts");
    let output = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(MISSING) {
        return Err(output.trim().to_owned());
    }
    assert!(done.status.success(), "tests/libraries/install {language}: {}\n{output}", done.status);
    Ok(libraries.join(language))
}

/// The repository: this file is part of several packages.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .find(|folder| folder.join("Cargo.lock").exists())
        .expect("a package is in the workspace")
}

/// Cargo's target folder, which the test binary is in.
pub(crate) fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test binary");
    let target = test.ancestors().find(|folder| folder.join(".rustc_info.json").exists());
    target.map_or_else(std::env::temp_dir, Path::to_owned)
}
