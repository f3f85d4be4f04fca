//! Libraries in other languages that tests need: installed once, in pinned versions, in cargo's
//! target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The exit status of `setup.sh` if this machine lacks the language.
const MISSING: i32 = 3;

/// Installs what the folder `pins` lists for a language (`python` or `node`), and returns the
/// folder of the result: with `venv` for Python, with `node_modules` for Node.
///
/// # Errors
/// The name of what this machine lacks.
///
/// # Panics
/// If the installation fails.
pub fn install(name: &str, language: &str, pins: &Path) -> Result<PathBuf, String> {
    let folder = cache_folder().join(name);
    let mut setup =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receivers/setup.sh"));
    setup.arg(&folder).arg(language).arg(pins).stdin(Stdio::null());
    let done = setup.output().expect("setup.sh starts");
    let output = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(MISSING) {
        return Err(output.trim().to_owned());
    }
    assert!(done.status.success(), "setup.sh {language}: {}\n{output}", done.status);
    Ok(folder.join(language))
}

/// The folder where installed libraries are kept between runs.
fn cache_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test binary");
    let target = test.ancestors().find(|folder| folder.join(".rustc_info.json").exists());
    target.map_or_else(std::env::temp_dir, Path::to_owned)
}
