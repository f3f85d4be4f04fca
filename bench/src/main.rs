//! Measures the two functions beside what people would write instead, and writes `BENCH.md`.
//!
//! `bench/run` builds everything and starts this. Contenders take turns within each round, so that
//! a machine that is busy for a while is busy for all of them, and what counts is the median over
//! the rounds. No number here is an assertion: goals are ratios of one run, and each is shown as
//! met or missed.

mod child;
mod clock;
mod cloud;
mod contenders;
mod events;
mod goals;
mod instructions;
mod machine;
mod measure;
mod report;
mod results;
mod runtime_api;
mod server;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::contenders::{Contender, DEADLETTER, DISPATCH, FLOOR, PUT_LOOP};
use crate::events::Topic;
use crate::measure::{Load, run};
use crate::results::{Results, Scene};

/// Records of an invocation, as the tables show them.
const BATCHES: [usize; 3] = [1, 10, 100];
/// Rounds; each starts every contender once per batch size.
const ROUNDS: usize = 3;
/// Records of the invocations whose memory is compared.
const MANY_RECORDS: usize = 1_000;

/// The contenders whose instructions are counted.
const COUNTED: [&str; 4] = [DISPATCH, FLOOR, DEADLETTER, PUT_LOOP];

/// What `bench/run` says.
struct Arguments {
    binaries: PathBuf,
    tools: PathBuf,
    /// Nothing is written without it.
    out: Option<PathBuf>,
    /// Only these contenders; all of them where it is empty.
    only: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let mut contenders = contenders::all(&arguments.binaries, &arguments.tools);
    contenders.retain(|contender| {
        arguments.only.is_empty() || arguments.only.iter().any(|name| name == contender.name)
    });
    let load_before = machine::load();
    let mut results = measured(&contenders).await?;
    count(&contenders, &arguments.binaries, &mut results).await;
    let report = report::report(&results, &arguments.binaries, &load_before);
    println!("{report}");
    if let Some(out) = arguments.out {
        std::fs::write(&out, report)
            .with_context(|| format!("{} cannot be written", out.display()))?;
    }
    Ok(())
}

/// Counts the instructions of the contenders that are programs of their own; a virtual machine's
/// say little.
async fn count(contenders: &[Contender], binaries: &Path, results: &mut Results) {
    if !instructions::can_count() {
        return;
    }
    for contender in contenders.iter().filter(|contender| COUNTED.contains(&contender.name)) {
        eprintln!("instructions: {}", contender.name);
        match instructions::per_event(contender, binaries).await {
            Ok(per_event) => results.keep_instructions(contender.name, per_event),
            // What was measured is not lost for it.
            Err(error) => eprintln!("not counted: {error:#}"),
        }
    }
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut words = std::env::args().skip(1);
    let mut next = |what| {
        words.next().map(PathBuf::from).with_context(|| format!("{what} is missing: see bench/run"))
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

async fn measured(contenders: &[Contender]) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for round in 1..=ROUNDS {
        for batch in BATCHES {
            for contender in contenders {
                eprintln!("round {round} of {ROUNDS}, batches of {batch}: {}", contender.name);
                let run = run(contender, Load { topic: Topic::Taken, batch, once: false }).await?;
                results.keep(contender.name, Scene::Taken(batch), run);
            }
        }
        for dispatch in contenders.iter().filter(|contender| contender.name == DISPATCH) {
            eprintln!("round {round} of {ROUNDS}: {DISPATCH}, refused; {MANY_RECORDS} records");
            let refused =
                run(dispatch, Load { topic: Topic::Refused, batch: 10, once: false }).await?;
            results.keep(DISPATCH, Scene::Refused, refused);
            for topic in [Topic::Taken, Topic::Refused, Topic::RefusedSixTimes] {
                let run = run(dispatch, Load { topic, batch: MANY_RECORDS, once: true }).await?;
                results.keep(DISPATCH, Scene::Many(topic), run);
            }
        }
    }
    Ok(results)
}
