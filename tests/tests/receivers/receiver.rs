//! The receivers as processes: installed once, started once, ended with the tests.
//!
//! Separate so that the tests are about events, not about virtual environments. The libraries are
//! kept in cargo's target folder; if a machine lacks a language, that is reported and its half is
//! skipped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use delivery::subscription::public_key::key_set;

use super::{PUBLIC_KEY, SECRET};

/// The exit status of `setup.sh` if this machine lacks the language.
const MISSING: i32 = 3;

/// The SDK that reads the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sdk {
    /// PyPI `cloudevents`.
    Python,
    /// npm `cloudevents`.
    Node,
}

impl Sdk {
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::Node];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// The address of its receiver; `None`, reported as skipped, if this machine cannot run it.
    pub(crate) fn endpoint(self) -> Option<&'static str> {
        static PYTHON: OnceLock<Option<Receiver>> = OnceLock::new();
        static NODE: OnceLock<Option<Receiver>> = OnceLock::new();
        let cell = match self {
            Self::Python => &PYTHON,
            Self::Node => &NODE,
        };
        cell.get_or_init(|| self.start()).as_ref().map(|receiver| receiver.endpoint.as_str())
    }

    fn start(self) -> Option<Receiver> {
        let folder = self.install()?;
        let mut command = match self {
            Self::Python => Command::new(folder.join("venv/bin/python")),
            Self::Node => Command::new("node"),
        };
        let program = match self {
            Self::Python => "receiver.py",
            Self::Node => "receiver.mjs",
        };
        command.arg(sources().join(program)).arg(&folder).env("WEBHOOK_SECRET", SECRET);
        command.env("WEBHOOK_KEYS", key_set(&[PUBLIC_KEY.parse().expect("a public key")]));
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an installed interpreter starts");
        let mut port = String::new();
        let printed = process.stdout.take().expect("standard output is piped");
        BufReader::new(printed).read_line(&mut port).expect("a receiver prints its port");
        assert!(!port.is_empty(), "the receiver in {} does not start", self.as_str());
        Some(Receiver { endpoint: format!("http://127.0.0.1:{}", port.trim()), _process: process })
    }

    /// The folder with its libraries.
    pub(crate) fn install(self) -> Option<PathBuf> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder =
            temporary.parent().expect("the folder for temporary files is in the target folder");
        let folder = folder.join("receivers");
        let mut setup = Command::new(sources().join("setup.sh"));
        let done = setup
            .arg(&folder)
            .arg(self.as_str())
            .stdin(Stdio::null())
            .output()
            .expect("setup.sh starts");
        let output = String::from_utf8_lossy(&done.stderr);
        if done.status.code() == Some(MISSING) {
            skipped(self, output.trim());
            return None;
        }
        assert!(done.status.success(), "setup.sh {}: {}\n{output}", self.as_str(), done.status);
        Some(folder.join(self.as_str()))
    }
}

/// Reports a skipped receiver, written past the test harness, which would swallow it.
fn skipped(sdk: Sdk, missing: &str) {
    let written = writeln!(
        std::io::stderr(),
        "SKIPPED: the receiver in {}: {missing} is not on this machine",
        sdk.as_str()
    );
    written.expect("standard error is writable");
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receivers")
}

/// A running receiver.
struct Receiver {
    endpoint: String,
    /// Its standard input closes with this process, which ends the receiver.
    _process: Child,
}
