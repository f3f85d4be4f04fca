//! Transcripts: sessions of the command line with their files and their output.
//!
//! Each page of `transcripts/` is one test, which runs in an empty folder:
//!
//! - A block whose fence names a file, such as `yaml orders.yaml`, writes this file.
//! - A block of the language `console` runs its commands in bash: the lines that begin with `$ `,
//!   continued by lines that begin with `> `. After each command follows the output of the run,
//!   both streams together.
//! - The line `? 2` before the output is the exit code of the command. Without this line it is 0.
//! - In the output, `[..]` matches any characters, the line `...` matches any lines, and `[FOLDER]`
//!   is the folder. Two or more spaces within a line match any number of spaces above one, so that
//!   other column widths change no page.
//!
//! `SNAPSHOTS=overwrite cargo test …` writes the output of the run into the pages; review the diff.
//! The two outputs of a pipeline are in no order, so a page writes `2>&1 |` or `2> /dev/null |`.
//!
//! All commands of a page have the functions of its file `functions.sh`. `$FIXTURES` has the files
//! of several pages, and `$EXAMPLES` the examples of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snapbox::filter::NormalizeToExpected;
use snapbox::{Assert, Data, IntoData as _};

/// Makes a test of each page, and the list of their names.
macro_rules! transcripts {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

transcripts! {
    apply check command_line convert cost dead_letters dialects explain explain_event knative ledgers owners
    publish secret subscriptions try_secrets write_destinations
}

/// The pages that other modules run, in folders that they prepare.
const IN_PREPARED_FOLDERS: [&str; 5] = ["aws_errors", "destinations", "live_stack", "stack", "try"];

#[test]
fn every_page_is_a_test() {
    let files = fs::read_dir(pages()).expect("a folder").map(|file| file.expect("a file").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut names: Vec<String> = files
        .filter(is_page)
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut tests = [NAMES, &IN_PREPARED_FOLDERS].concat();
    tests.sort_unstable();
    assert_eq!(names, tests);
}

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/transcripts")
}

/// Runs a page in a new folder.
fn run(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    run_in(name, folder.path());
}

/// Runs a page in this folder, and compares it with the same page that has the output of this run.
pub(crate) fn run_in(name: &str, folder: &Path) {
    let page = pages().join(format!("{name}.md"));
    let text = fs::read_to_string(&page).expect("a page");
    let folder = folder.canonicalize().expect("a path");
    let mut actual = String::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        actual.push_str(line);
        let Some(words) = line.trim_end().strip_prefix("```") else { continue };
        let block: String = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
        match words.split_once(' ') {
            Some((_, file)) => write(&folder.join(file), &block),
            None => assert_eq!(words, "console", "{name}: neither a file nor commands"),
        }
        actual += &if words == "console" { run_block(&block, &folder) } else { block };
        actual.push_str("```\n");
    }
    Assert::new().action_env("SNAPSHOTS").eq(actual, Data::read_from(&page, None).raw());
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
}

/// Runs the commands of a block; returns the block with the output of this run.
fn run_block(block: &str, folder: &Path) -> String {
    let block = format!("\n{block}");
    let (nothing, commands) = block.split_once("\n$ ").expect("a command");
    assert_eq!(nothing, "", "output comes after a command");
    commands.trim_end_matches('\n').split("\n$ ").map(|command| step(command, folder)).collect()
}

/// Runs a command that its expected output follows; returns both with the output of this run.
fn step(text: &str, folder: &Path) -> String {
    let mut lines = text.lines();
    let mut command = lines.next().expect("a command").to_owned();
    let mut expected = String::new();
    for line in lines {
        match line.strip_prefix("> ") {
            Some(continued) if expected.is_empty() => command = format!("{command}\n{continued}"),
            Some(_) | None => expected = format!("{expected}{line}\n"),
        }
    }
    let (printed, code) = bash(&command, folder);
    let code = if code == 0 { String::new() } else { format!("? {code}\n") };
    let actual = format!("{code}{printed}");
    let pattern = without_widths(&expected);
    let is_expected = matched(&without_widths(&actual), &pattern) == pattern;
    let printed = if is_expected { expected } else { matched(&actual, &expected) };
    format!("$ {}\n{printed}", command.replace('\n', "\n> "))
}

/// Returns the output with the placeholders of the pattern in place of the texts that they match.
fn matched(output: &str, pattern: &str) -> String {
    let (output, pattern) = (output.into_data(), pattern.into_data());
    NormalizeToExpected::new().redact().normalize(output, &pattern).to_string()
}

/// Reduces the gaps between columns to two spaces, because the width of a column is not tested.
/// Keeps the indentation of each line, which has a meaning in YAML.
pub(crate) fn without_widths(text: &str) -> String {
    let cells = |line: &str| {
        let indentation: String = line.chars().take_while(|character| *character == ' ').collect();
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        (indentation + &cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    text.lines().map(cells).collect::<Vec<_>>().join("\n")
}

/// Runs a command line; returns what it printed on both outputs, and its exit code.
fn bash(line: &str, folder: &Path) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_lastmile"));
    let programs = program.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder).stdin(Stdio::null());
    bash.env_clear().env("PATH", format!("{programs}:{path}")).env("HOME", folder);
    bash.env("FIXTURES", pages().join("fixtures"));
    bash.env("EXAMPLES", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"));
    bash.env("BASH_ENV", folder.join("functions.sh"));
    bash.env("LASTMILE_CACHE", "off").env("AWS_EC2_METADATA_DISABLED", "true");
    let output = bash.output().expect("bash runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    let mut printed = printed.replace(&folder.display().to_string(), "[FOLDER]");
    if !printed.is_empty() && !printed.ends_with('\n') {
        printed.push('\n');
    }
    (printed, output.status.code().expect("no signal"))
}
