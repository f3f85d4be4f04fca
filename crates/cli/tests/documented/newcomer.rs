//! `tests/newcomer` runs every block of commands of the README.
//!
//! The script takes them from the page itself, with `awk`; this compares what it finds with what
//! the page has, so that it cannot silently find less.

use std::process::Command;

use crate::pages::{self, Page};

#[test]
fn the_script_for_newcomers_runs_every_command_of_the_readme() {
    let script = pages::root().join("tests/newcomer");
    let listed = Command::new(script).arg("--list").output().expect("the script starts");
    let listed = String::from_utf8(listed.stdout).expect("the README is text");
    let readme = Page::read("README.md");
    let blocks: Vec<String> = readme
        .blocks
        .iter()
        .filter(|block| block.words.first().is_some_and(|word| word == "sh"))
        .map(|block| format!("# line {}: {}\n{}", block.line, block.words.join(" "), block.text))
        .collect();
    assert!(blocks.len() > 2);
    assert_eq!(listed, blocks.concat());
}
