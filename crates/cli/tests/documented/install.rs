//! `tests/install` on other systems than this machine. Their programs and packages are fake, and a
//! log records the installed packages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::pages;

/// Creates a program of the fake system.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Runs the script on a system with Node 18 whose package of Node has this version. Returns the
/// installed packages, the error output and the exit code.
fn installed(version: &str) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = folder.path().join("log");
    for (name, script) in [
        ("id", "echo 0".to_owned()),
        ("python3", "exit 0".to_owned()),
        ("chromium", "exit 0".to_owned()),
        ("npm", "exit 0".to_owned()),
        ("node", "echo v18.20.4".to_owned()),
        ("apt-cache", format!("echo '  Candidate: {version}'")),
        ("apt-get", format!("[ $1 = update ] || echo \"$*\" >> '{}'", log.display())),
    ] {
        program(folder.path(), name, &script);
    }
    let mut install = Command::new(pages::root().join("tests/install"));
    install
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .env_remove("CHROMIUM");
    let output = install.output().expect("the script starts");
    let said = String::from_utf8(output.stderr).expect("text");
    (fs::read_to_string(log).unwrap_or_default(), said, output.status.code())
}

#[test]
fn a_node_that_is_too_old_is_not_installed_and_the_way_to_another_is_named() {
    let (packages, said, code) = installed("18.20.4+dfsg-1~deb12u2");
    assert_eq!((packages.as_str(), code), ("", Some(3)), "{said}");
    for part in ["missing for the tests: Node 20 or newer", "18.20.4", "https://nodejs.org/"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (packages, said, _) = installed("(none)");
    assert!(packages.is_empty() && said.contains("https://nodejs.org/"), "{packages}{said}");
}

#[test]
fn a_node_that_will_do_is_installed_with_npm_which_one_of_its_packages_has_already() {
    for (version, expected) in
        [("20.19.2+dfsg-1", "nodejs npm"), ("22.11.0-1nodesource1", "nodejs")]
    {
        let (packages, said, code) = installed(version);
        let words: Vec<&str> =
            packages.split_whitespace().filter(|word| !word.starts_with('-')).collect();
        assert_eq!(words.join(" "), format!("install {expected}"), "{said}");
        // The fake system still has the old version.
        assert!(code == Some(3) && said.contains("missing for the tests: Node 20"), "{said}");
    }
}
