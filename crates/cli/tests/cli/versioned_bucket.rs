//! A bucket that keeps versions and metadata, which the local S3 does not: it is one of the
//! emulated AWS, whose STS names the caller.
//!
//! There is one emulated AWS for the whole test binary, and a bucket for each test.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::net::TcpSocket;

use crate::libraries;
use crate::programs::{exchange, lastmile, printed};

/// The wait between two looks whether it has started, and how often to look: for a minute.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 3_000;
const KEEPS_VERSIONS: &str =
    "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

/// The emulated AWS; it ends with its standard input, which this process holds open.
struct EmulatedAws {
    address: String,
    _process: Child,
    /// Bound and not listening, so that nobody else is given the port.
    _port: TcpSocket,
}

/// A deployment in a bucket of its own, and a folder for files.
pub(crate) struct VersionedBucket {
    address: &'static str,
    name: &'static str,
    folder: tempfile::TempDir,
}

impl EmulatedAws {
    /// `None`, having said so, where this machine lacks Python.
    fn start() -> Option<Self> {
        let python = libraries::python("versions of objects")?;
        let port = TcpSocket::new_v4().expect("this machine has sockets");
        port.set_reuseaddr(true).expect("an option of a new socket");
        port.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("this machine has a free port");
        let address = port.local_addr().expect("a bound socket has an address");
        let script = "tests/cli/emulated_aws/emulated_aws.py";
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
        command.arg(address.port().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("python starts");
        let has_started = (0..LOOKS_MAX).any(|_| {
            std::thread::sleep(LOOK_EVERY);
            TcpStream::connect(address).is_ok()
        });
        assert!(has_started, "the emulated AWS does not start");
        Some(Self { address: address.to_string(), _process: process, _port: port })
    }
}

impl VersionedBucket {
    /// A new bucket of this name.
    pub(crate) fn new(name: &'static str) -> Option<Self> {
        static AWS: LazyLock<Option<EmulatedAws>> = LazyLock::new(EmulatedAws::start);
        let address = AWS.as_ref()?.address.as_str();
        let folder = tempfile::tempdir().expect("a folder");
        let bucket = Self { address, name, folder };
        for (path, body) in [("", ""), ("?versioning", KEEPS_VERSIONS)] {
            let answer = bucket.request("PUT", path, body);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        Some(bucket)
    }

    /// The folder that commands run in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of the deployment.
    pub(crate) fn uri(&self) -> String {
        format!("s3://{}/subscriptions/", self.name)
    }

    /// The answer to a request about this bucket, with its headers.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> String {
        let Self { address, name, .. } = self;
        exchange(address, &format!("{method} /{name}{path}"), "host: localhost\r\n", body)
    }

    /// Runs a command on this deployment; returns what was printed and the exit code.
    pub(crate) fn run(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let mut command = self.command(arguments);
        printed(&command.stdin(Stdio::null()).output().expect("the program runs"))
    }

    /// A command on this deployment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = lastmile(self.folder(), &[arguments, &["--to", &self.uri()]].concat());
        command.env_remove("AWS_PROFILE").envs([
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address).as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ]);
        command
    }

    /// Applies these documents as this owner; returns what was printed.
    pub(crate) fn apply(&self, owner: &str, documents: &[String], more: &[&str]) -> String {
        let file = self.folder().join("applied.yaml");
        std::fs::write(file, documents.join("---\n")).expect("a file");
        let options = ["apply", "-f", "applied.yaml", "--owner", owner, "--yes", "--allow-empty"];
        let (printed, code) = self.run(&[&options, more].concat());
        assert_eq!(code, Some(0), "{printed}");
        printed
    }
}
