//! Compares the two functions with alternatives that a team might write, and writes `BENCH.md`.
//!
//! `bench/run` builds everything and starts this program. Contenders take turns within each round,
//! so that a busy phase of the machine affects all of them; the result is the median over the
//! rounds. No number is asserted: the report shows for each goal whether it was met or missed.

mod catalogues;
mod child;
mod clock;
mod cloud;
mod contenders;
mod events;
mod goals;

mod hostile;
mod http;
mod instructions;
mod latency;
mod machine;
mod measure;
mod report;
mod results;
mod runtime_api;
mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::contenders::{Contender, DEADLETTER, DISPATCH, FLOOR, PUT_LOOP};
use crate::events::Topic;
use crate::measure::{Workload, run};
use crate::results::{Results, Scenario};

/// Records per invocation, as the tables show them.
const BATCHES: [usize; 3] = [1, 10, 100];
/// The number of rounds; each starts every contender once per batch size.
const ROUNDS: usize = 3;
/// Records per invocation when peak memory is compared.
const MANY_RECORDS: usize = 1_000;

/// The contenders whose instructions are counted.
const COUNTED: [&str; 4] = [DISPATCH, FLOOR, DEADLETTER, PUT_LOOP];

/// The arguments that `bench/run` passes.
struct Arguments {
    binaries: PathBuf,
    tools: PathBuf,
    /// The report to write, if any.
    out: Option<PathBuf>,
    /// The contenders to measure; all of them if empty.
    only: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, binaries, folder] = given.as_slice()
        && mode == "catalogues"
    {
        println!("{}", catalogues::measure(Path::new(binaries), Path::new(folder)).await?);
        return Ok(());
    }
    if let [mode, binaries] = given.as_slice()
        && mode == "hostile"
    {
        println!("{}", hostile::measure(Path::new(binaries)).await?);
        return Ok(());
    }
    if let [mode, binaries] = given.as_slice()
        && mode == "latency"
    {
        println!("{}", latency::measure(Path::new(binaries)).await?);
        return Ok(());
    }
    let arguments = arguments()?;
    let mut contenders = contenders::all(&arguments.binaries, &arguments.tools);
    contenders.retain(|contender| {
        arguments.only.is_empty() || arguments.only.iter().any(|name| name == contender.name)
    });
    ensure!(!contenders.is_empty(), "there are no such contenders: {}", arguments.only.join(", "));
    let load_before = machine::load();
    let mut results = measure_all(&contenders).await?;
    count_instructions(&contenders, &arguments.binaries, &mut results).await;
    let report = report::report(&results, &arguments.binaries, &load_before);
    println!("{report}");
    if let Some(out) = arguments.out {
        std::fs::write(&out, report)
            .with_context(|| format!("{} cannot be written", out.display()))?;
    }
    Ok(())
}

/// Counts the instructions of the native contenders; those of an interpreter or a JIT compiler are
/// not comparable.
async fn count_instructions(contenders: &[Contender], binaries: &Path, results: &mut Results) {
    if !instructions::can_count() {
        return;
    }
    for contender in contenders.iter().filter(|contender| COUNTED.contains(&contender.name)) {
        eprintln!("instructions: {}", contender.name);
        match instructions::per_event(contender, binaries).await {
            Ok(per_event) => results.instructions.push((contender.name, per_event)),
            // The timings are still worth reporting.
            Err(error) => eprintln!("instructions not counted: {error:#}"),
        }
    }
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut words = std::env::args().skip(1);
    let mut next = |argument| {
        words
            .next()
            .map(PathBuf::from)
            .with_context(|| format!("{argument} is missing: see bench/run"))
    };
    let (binaries, tools) =
        (next("the folder of the binaries")?, next("the folder of Python's tools")?);
    let out = next("the file to write, or -")?;
    Ok(Arguments {
        binaries,
        tools,
        out: (out.as_os_str() != "-").then_some(out),
        only: words.collect(),
    })
}

async fn measure_all(contenders: &[Contender]) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for round in 1..=ROUNDS {
        for batch in BATCHES {
            for contender in contenders {
                eprintln!("round {round} of {ROUNDS}, batches of {batch}: {}", contender.name);
                let run = run(contender, Workload { topic: Topic::Accepted, batch, single: false })
                    .await?;
                results.add(contender.name, Scenario::Accepted(batch), run);
            }
        }
        for dispatch in contenders.iter().filter(|contender| contender.name == DISPATCH) {
            eprintln!("round {round} of {ROUNDS}: {DISPATCH}, refused; {MANY_RECORDS} records");
            let refused =
                run(dispatch, Workload { topic: Topic::Refused, batch: 10, single: false }).await?;
            results.add(DISPATCH, Scenario::Refused, refused);
            for topic in [Topic::Accepted, Topic::Refused, Topic::RefusedSixTimes] {
                let run =
                    run(dispatch, Workload { topic, batch: MANY_RECORDS, single: true }).await?;
                results.add(DISPATCH, Scenario::Many(topic), run);
            }
        }
    }
    Ok(results)
}
