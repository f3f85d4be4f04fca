//! The process of the emulated AWS, which the scripts in `tests/emulated` run.
//!
//! Separate because two suites start one: the tests of a deployed application, and the contract of the table. Promises: it
//! ends with this process, however that ends.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpSocket;

use crate::libraries::target_folder;

/// The time from its start to its first response, at most.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A free port of this machine that no other process is given while this value lives.
#[derive(Debug)]
pub struct ReservedPort {
    /// The port of 127.0.0.1.
    pub number: u16,
    /// Bound and not listening: a server that is told the number, and allows its reuse as all do, can
    /// listen, and the system gives the port to nobody who asks for any.
    _socket: TcpSocket,
}

impl ReservedPort {
    /// A port that nobody uses.
    ///
    /// # Panics
    /// If this machine has none.
    #[must_use]
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("this machine has sockets");
        socket.set_reuseaddr(true).expect("an option of a new socket");
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        socket.bind(any).expect("this machine has a free port");
        let number = socket.local_addr().expect("a bound socket has an address").port();
        Self { number, _socket: socket }
    }
}

/// The folder in cargo's target folder where the scripts keep their results for a suite. The libraries are beside it.
#[must_use]
pub fn build_folder(suite: &str) -> PathBuf {
    target_folder().join(suite)
}

/// A script of `tests/emulated` with this build folder.
#[must_use]
pub fn command(build: &Path, script: &str, arguments: &[&str]) -> Command {
    let mut command =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("emulated").join(script));
    command.arg(build).args(arguments).stdin(Stdio::null());
    command
}

/// Starts the emulated AWS on this port, with functions that call another port and have these variables. Its standard
/// input closes with this process, which ends it.
///
/// # Panics
/// If it does not start.
pub async fn serve(
    build: &Path,
    port: u16,
    functions_call: u16,
    variables: Vec<(String, String)>,
) -> Child {
    let mut command = command(build, "serve.sh", &[&port.to_string(), &functions_call.to_string()]);
    command.envs(variables);
    // In a process group of its own: whatever kills the tests with their whole group must not kill
    // the script that cleans up.
    let mut server =
        command.stdin(Stdio::piped()).process_group(0).spawn().expect("serve.sh starts");
    let health = format!("http://127.0.0.1:{port}/_ministack/health");
    let answering = async {
        while !reqwest::get(&health).await.is_ok_and(|answer| answer.status().is_success()) {
            let ended = server.try_wait().expect("the child's status can be read");
            assert!(ended.is_none(), "the emulated AWS ended: {ended:?}\n{}", server_log(build));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let in_time = tokio::time::timeout(START_LIMIT, answering).await;
    assert!(in_time.is_ok(), "the emulated AWS does not answer\n{}", server_log(build));
    server
}

/// The log of the emulated AWS, with the output of the functions.
#[must_use]
pub fn server_log(build: &Path) -> String {
    fs::read_to_string(build.join("ministack.log")).unwrap_or_default()
}
