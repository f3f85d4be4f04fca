//! The examples of a page of `docs`, run as a reader would, with the reader's tools.
//!
//! Separate because two test binaries run them: what needs only SQS runs on the local AWS, the rest
//! on the emulated one. An example whose tool this machine lacks is reported as skipped, written
//! past the test harness, which would swallow it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::libraries;

/// Version 1 of the AWS CLI ignores `AWS_ENDPOINT_URL` and uses the real SQS; only its option
/// overrides that.
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
        let Some(mut command) = self.command() else { return false };
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
        let tool = self.text.split_whitespace().next().expect("an example is not empty");
        if !Command::new(tool).arg("--version").output().is_ok_and(|done| done.status.success()) {
            libraries::skipped(&self.title(), tool);
            return None;
        }
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-s"]);
        Some(shell)
    }

    /// Its name in a report.
    fn title(&self) -> String {
        format!("the example \"{}\"", self.heading)
    }
}
