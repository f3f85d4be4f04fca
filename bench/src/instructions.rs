//! Instructions per event, counted by valgrind's callgrind.
//!
//! This module is separate from the timings because it measures the cost of a change independently
//! of the machine and its load. One thing still varies: the number of responses that a function
//! finds ready at each poll. Two processes are measured, and the second gets more invocations. The
//! difference between their totals is the cost of the additional events, because the cost of the
//! start is the same in both. Work in the kernel is not counted.
//!
//! The profile is kept beside the binaries as `callgrind.<contender>`, for `callgrind_annotate`. It
//! has function names if the binary has symbols (`CARGO_PROFILE_RELEASE_STRIP=none`).

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::child::Function;
use crate::contenders::Contender;
use crate::events::{self, Topic};
use crate::measure::{invoke, wait_until_ready};
use crate::server::Server;

/// Records per invocation.
const BATCH: usize = 10;
/// Number of invocations in the shorter of the two runs; [`MORE`] is the number in the longer run.
const FEWER: u64 = 30;
const MORE: u64 = 130;

/// Returns true if valgrind is installed.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the number of instructions that a contender executes per event.
pub(crate) async fn per_event(contender: &Contender, binaries: &Path) -> anyhow::Result<u64> {
    let file = binaries.join(format!("callgrind.{}", contender.name.replace(' ', "-")));
    let (fewer, more) =
        (total(contender, FEWER, &file).await?, total(contender, MORE, &file).await?);
    let events = more.checked_sub(fewer).context("the longer run executed fewer instructions")?;
    Ok(events / ((MORE - FEWER) * BATCH as u64))
}

/// Runs a process for this many invocations, and returns the number of instructions of the whole
/// process.
async fn total(contender: &Contender, invocations: u64, file: &Path) -> anyhow::Result<u64> {
    // An earlier run may have left its profile under the same name.
    let _ = std::fs::remove_file(file);
    let mut arguments = vec![
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
        contender.program.clone(),
    ];
    arguments.extend(contender.arguments.iter().cloned());
    let counted = Contender { program: "valgrind".to_owned(), arguments, ..contender.clone() };
    let (server, mut invoker) = Server::start().await?;
    let function = Function::start(&counted, &server)?;
    wait_until_ready(&mut invoker, &counted).await?;
    let event = events::batch(counted.job, Topic::Accepted, BATCH);
    for _ in 0..invocations {
        invoke(&mut invoker, &event, &counted).await?;
    }
    function.end()?;
    let profile = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .context("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}
