//! Instructions per event, counted by valgrind's callgrind.
//!
//! Separate from the measured times because it answers another question: not how long, but whether
//! a change made it more or less. Counts hardly depend on the machine or on what else it does; what
//! varies is how many answers a function finds at once when it looks. Two processes, one with more
//! invocations than the other: what they differ by is the price of the events, without the start.
//! What the kernel does for them is not counted.
//!
//! The profile stays beside the binaries as `callgrind.<contender>`, for `callgrind_annotate`; it
//! has names of functions where the binary has them (`CARGO_PROFILE_RELEASE_STRIP=none`).

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::child::Function;
use crate::contenders::Contender;
use crate::events::{self, Topic};
use crate::measure::{invoke, is_ready};
use crate::runtime_api::runtime_api;
use crate::server::Server;

/// Records of an invocation.
const BATCH: usize = 10;
/// Invocations of the two processes.
const FEWER: u64 = 30;
const MORE: u64 = 130;

/// Whether there is anything to count with.
pub(crate) fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The instructions that a contender needs for an event.
pub(crate) async fn per_event(contender: &Contender, binaries: &Path) -> anyhow::Result<u64> {
    let file = binaries.join(format!("callgrind.{}", contender.name.replace(' ', "-")));
    let (fewer, more) =
        (total(contender, FEWER, &file).await?, total(contender, MORE, &file).await?);
    let events = more.checked_sub(fewer).context("more invocations took fewer instructions")?;
    Ok(events / ((MORE - FEWER) * BATCH as u64))
}

/// The instructions of a whole process with so many invocations.
async fn total(contender: &Contender, invocations: u64, file: &Path) -> anyhow::Result<u64> {
    // What an earlier process left there is not ours.
    let _ = std::fs::remove_file(file);
    let mut arguments = vec![
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ];
    arguments.push(contender.program.clone());
    arguments.extend(contender.arguments.iter().cloned());
    let counted = Contender { program: "valgrind".to_owned(), arguments, ..contender.clone() };
    let (runtime_api, mut invoker) = runtime_api();
    let server = Server::start(runtime_api, events::subscriptions).await?;
    let function = Function::start(&counted, &server)?;
    is_ready(&mut invoker, &counted).await?;
    let event = events::batch(counted.job, Topic::Taken, BATCH);
    for _ in 0..invocations {
        invoke(&mut invoker, &event, &counted).await?;
    }
    function.end()?;
    let profile = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .context("callgrind says a total")?;
    Ok(total.trim().parse()?)
}
