//! The receivers as processes: installed once, started once, ended with the tests.
//!
//! If a machine lacks a language, that is reported and its half is skipped.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use delivery::subscription::public_key::key_set;
use lastmile_tests::libraries;

use super::{PUBLIC_KEY, SECRET};

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
        let mut command = match self {
            Self::Python => {
                let mut python = Command::new(libraries::python("the receiver in python")?);
                python.arg(sources().join("receiver.py"));
                python
            }
            Self::Node => {
                let folder = libraries::node("the receiver in node")?;
                let mut node = Command::new("node");
                node.arg(sources().join("receiver.mjs")).arg(folder);
                node
            }
        };
        command.env("WEBHOOK_SECRET", SECRET);
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
}

/// The folder of the receivers.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receivers")
}

/// A running receiver.
struct Receiver {
    endpoint: String,
    /// Its standard input closes with this process, which ends the receiver.
    _process: Child,
}
