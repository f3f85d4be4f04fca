//! The examples of a page of `docs`, run as a reader would, with the reader's tools.
//!
//! Separate because two test binaries run them: what needs only SQS runs on the local AWS, the rest
//! on the emulated one. The AWS CLI is one of the tests' libraries. An example whose tool this machine
//! lacks is reported as skipped, written past the test harness, which would swallow it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::libraries;

/// Version 1 of the AWS CLI, which is in a package registry, ignores `AWS_ENDPOINT_URL` for SQS and uses the real one. Only
/// its option overrides that.
const AWS: &str = "aws() { command aws --endpoint-url \"$AWS_ENDPOINT_URL\" \"$@\"; }\n";

/// One example: a fenced code block.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// The heading above it.
    pub heading: String,
    /// The language of the fence, without what follows it.
    pub language: String,
    /// The text between the fences.
    pub text: String,
}

/// The examples of a page, in order.
///
/// # Panics
/// If there is no such page.
#[must_use]
pub fn of_page(page: &str) -> Vec<Snippet> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut heading, mut found, mut open) = (String::new(), Vec::new(), None::<Snippet>);
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(snippet), None) => snippet.text.extend([line, "\n"]),
            (None, Some(language)) => {
                let language = language.split(' ').next().unwrap_or_default().to_owned();
                let heading = heading.clone();
                open = Some(Snippet { heading, language, text: String::new() });
            }
            (None, None) if line.starts_with('#') => {
                line.trim_start_matches(['#', ' ']).clone_into(&mut heading);
            }
            (None, None) => {}
        }
    }
    found
}

/// The example under this heading.
///
/// # Panics
/// If the page has no example there.
#[must_use]
pub fn under(page: &str, heading: &str) -> Snippet {
    let mut all = of_page(page).into_iter();
    all.find(|snippet| snippet.heading == heading)
        .unwrap_or_else(|| panic!("{page} has no example under {heading}"))
}

impl Snippet {
    /// Runs it in this environment until it ends; returns `false`, and reports it as skipped, if
    /// this machine lacks the tool.
    ///
    /// # Panics
    /// If it fails, with its output.
    #[must_use]
    pub fn run(&self, environment: &[(&str, &str)]) -> bool {
        self.command().is_some_and(|command| self.run_by(command, environment))
    }

    /// Does the same in a folder, with the files that the example needs.
    ///
    /// # Panics
    /// As [`Snippet::run`].
    #[must_use]
    pub fn run_in(&self, folder: &Path, environment: &[(&str, &str)]) -> bool {
        self.command().is_some_and(|mut command| {
            command.current_dir(folder);
            self.run_by(command, environment)
        })
    }

    fn run_by(&self, mut command: Command, environment: &[(&str, &str)]) -> bool {
        let fixed = [
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_PAGER", ""),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("no_proxy", "127.0.0.1,localhost"),
        ];
        command.env_remove("AWS_PROFILE").env_remove("AWS_SESSION_TOKEN");
        command.envs(fixed).envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("an installed interpreter starts");
        let mut input = running.stdin.take().expect("standard input is piped");
        let program =
            if self.language == "sh" { format!("{AWS}{}", self.text) } else { self.text.clone() };
        input.write_all(program.as_bytes()).expect("the interpreter reads its program");
        drop(input);
        let done = running.wait_with_output().expect("the process is ours");
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let heading = &self.heading;
        assert!(
            done.status.success(),
            "{heading}: {}\n{}\n{}",
            done.status,
            text_of(&done.stdout),
            text_of(&done.stderr)
        );
        true
    }

    /// The command that reads it from standard input.
    fn command(&self) -> Option<Command> {
        match self.language.as_str() {
            "sh" => self.shell(),
            "python" => {
                let mut python = Command::new(libraries::python(&self.title())?);
                python.arg("-");
                Some(python)
            }
            "js" => {
                let folder = libraries::node(&self.title())?;
                let mut node = Command::new("node");
                node.args(["--input-type=module", "-"]).current_dir(folder);
                Some(node)
            }
            other => panic!("{}: unknown language {other}", self.heading),
        }
    }

    fn shell(&self) -> Option<Command> {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-s"]);
        let tool = self.text.split_whitespace().next().expect("an example is not empty");
        if tool == "aws" {
            let python = libraries::python(&self.title())?;
            let tools = python.parent().expect("the interpreter is in a folder");
            let path = std::env::var_os("PATH").unwrap_or_default();
            let all = [tools.to_owned()].into_iter().chain(std::env::split_paths(&path));
            shell.env("PATH", std::env::join_paths(all).expect("folders without a colon"));
            return Some(shell);
        }
        if !Command::new(tool).arg("--version").output().is_ok_and(|done| done.status.success()) {
            libraries::skipped(&self.title(), tool);
            return None;
        }
        Some(shell)
    }

    /// Its name in a report.
    fn title(&self) -> String {
        format!("the example \"{}\"", self.heading)
    }
}
