//! Finds function processes of the emulated AWS by a connection or by their ancestor, and kills
//! them like a crash of their machine.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Kills the function process at the other end of a connection.
///
/// # Panics
/// If the process has ended.
pub(crate) fn kill_the_function_at(from: SocketAddr, to: SocketAddr) {
    assert!(try_kill_the_function_at(from, to), "the connection of a held request is open");
}

/// Kills the function process at the other end of a connection, if it still runs. Returns true if
/// it was killed.
pub(crate) fn try_kill_the_function_at(from: SocketAddr, to: SocketAddr) -> bool {
    function_at(from, to).is_some_and(|process| kill(&process))
}

/// Returns the process at the other end of a connection while the connection is open.
pub(crate) fn function_at(from: SocketAddr, to: SocketAddr) -> Option<String> {
    owner_of(&socket_of(from, to)?)
}

/// Returns the function processes that `ancestor` started, directly or through others.
pub(crate) fn functions_below(ancestor: u32) -> Vec<String> {
    let is_below = |process: &String| {
        let mut parents = std::iter::successors(parent_of(process), |child| parent_of(child));
        name_of(process) == FUNCTION && parents.any(|parent| parent == ancestor.to_string())
    };
    processes().filter(is_below).collect()
}

/// Kills a function process. Returns false if it has ended.
///
/// # Panics
/// If the process is not a function.
pub(crate) fn kill(process: &str) -> bool {
    let name = name_of(process);
    if name.is_empty() {
        return false;
    }
    assert_eq!(name, FUNCTION, "only functions are killed");
    let killed = Command::new("kill").args(["-9", process]).output().expect("kill starts");
    killed.status.success()
}

/// The name of a function's program on Lambda.
const FUNCTION: &str = "bootstrap";

/// Returns the name of this side of a connection in `/proc/<process>/fd` (proc_pid_net(5):
/// addresses in hexadecimal, the inode in the tenth column).
fn socket_of(from: SocketAddr, to: SocketAddr) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux lists its connections");
    table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let ends_with = |column: usize, port: u16| {
            columns.get(column)?.ends_with(&format!(":{port:04X}")).then_some(())
        };
        ends_with(1, from.port())?;
        ends_with(2, to.port())?;
        Some(format!("socket:[{}]", columns.get(9)?))
    })
}

/// Returns the process that has this socket open.
fn owner_of(socket: &str) -> Option<String> {
    let owns = |process: &String| {
        let folder = Path::new("/proc").join(process).join("fd");
        let mut open = fs::read_dir(folder).into_iter().flatten().flatten();
        open.any(|file| fs::read_link(file.path()).is_ok_and(|link| link == Path::new(socket)))
    };
    processes().find(owns)
}

fn processes() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").expect("Linux lists its processes").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.parse::<u32>().is_ok())
}

/// Returns the name of a process; empty after it has ended.
fn name_of(process: &str) -> String {
    let name = fs::read_to_string(Path::new("/proc").join(process).join("comm"));
    name.unwrap_or_default().trim().to_owned()
}

fn parent_of(process: &str) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(process).join("stat")).ok()?;
    // The name in parentheses may contain spaces; the state and the parent follow it
    // (proc_pid_stat(5)).
    Some(stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned())
}
