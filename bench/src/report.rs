//! Formats `BENCH.md`: first the goals, then the tables with the measured values.

use std::path::Path;

use crate::contenders::{DEADLETTER, DISPATCH, FLOOR, FLOOR_THREADED, NODE, PUT_LOOP, PYTHON};
use crate::events::{SUBSCRIPTIONS, Topic};
use crate::measure::Run;
use crate::results::{Results, Scenario, ms};
use crate::{BATCHES, MANY_RECORDS, ROUNDS, goals, machine};

/// Notes written by hand: limits of the measurement, reasons for missed goals, contents of the
/// binaries.
const NOTES: &str = include_str!("../notes.md");

/// The latency of events, written by `bench/latency`.
const LATENCY: &str = include_str!("../latency.md");
/// The cost of many subscriptions, written by `bench/catalogues`.
const CATALOGUES: &str = include_str!("../catalogues.md");
/// The effect of unhealthy destinations on healthy ones, written by `bench/neighbours`.
const NEIGHBOURS: &str = include_str!("../neighbours.md");

/// Returns the text of `BENCH.md`.
pub(crate) fn report(results: &Results, binaries: &Path, load_before: &str) -> String {
    let mut text = String::from(
        "# Bench\n\nWritten by `bench/run`; do not edit. [bench/README.md](bench/README.md) explains what is measured, and how.\n\n",
    );
    for line in machine::describe(load_before) {
        text.push_str(&format!("- {line}\n"));
    }
    text.push_str(&format!(
        "- Figures: medians of {ROUNDS} rounds in which all contenders take turns. CPU is the CPU time of the live threads\n"
    ));
    goals_table(&mut text, results);
    text.push_str(&format!(
        "\n## Delivering\n\ndispatch has {SUBSCRIPTIONS} subscriptions. Each event goes to one destination, which responds with 204.\n\n"
    ));
    contenders_table(&mut text, results, &[DISPATCH, FLOOR, FLOOR_THREADED, NODE, PYTHON]);
    text.push_str("\n## Storing\n\n");
    contenders_table(&mut text, results, &[DEADLETTER, PUT_LOOP]);
    starts_table(&mut text, results, binaries);
    refusals_table(&mut text, results);
    instructions_table(&mut text, results);
    for section in [NEIGHBOURS, CATALOGUES, LATENCY, NOTES] {
        text.push('\n');
        text.push_str(section);
    }
    text
}

fn goals_table(text: &mut String, results: &Results) {
    text.push_str("\n## Goals\n\n| goal | bound | measured | |\n|---|---|---|---|\n");
    for goal in goals::goals(results) {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            goal.description,
            goal.bound(),
            goal.measured(),
            goal.verdict()
        ));
    }
}

fn contenders_table(text: &mut String, results: &Results, names: &[&str]) {
    text.push_str(
        "| | records | CPU per event | events per second | peak memory |\n|---|---|---|---|---|\n",
    );
    for batch in BATCHES {
        for name in names {
            let scenario = Scenario::Accepted(batch);
            let number = |number: fn(&Run) -> f64| results.median(name, scenario, number);
            let Some(cpu) = number(Run::cpu_us_per_event) else { continue };
            let speed = number(Run::events_per_second).unwrap_or_default();
            let memory = number(Run::peak_mib).unwrap_or_default();
            text.push_str(&format!(
                "| {name} | {batch} | {cpu:.1} µs | {speed:.0} | {memory:.1} MiB |\n"
            ));
        }
    }
}

fn starts_table(text: &mut String, results: &Results, binaries: &Path) {
    text.push_str("\n## Starting\n\n| | start to first `/next` | shortest | first invocation, one record | binary |\n|---|---|---|---|---|\n");
    let binary = |name: &str| match name {
        DISPATCH | DEADLETTER => machine::mib(&binaries.join(name)),
        FLOOR => machine::mib(&binaries.join("bench-floor")),
        PUT_LOOP => machine::mib(&binaries.join("bench-put-loop")),
        _ => "–".to_owned(),
    };
    for name in [DISPATCH, FLOOR, FLOOR_THREADED, NODE, PYTHON, DEADLETTER, PUT_LOOP] {
        let Some((start, shortest)) = results.start_ms(name).zip(results.shortest_start_ms(name))
        else {
            continue;
        };
        let first =
            results.median(name, Scenario::Accepted(1), |run| ms(run.first)).unwrap_or_default();
        text.push_str(&format!(
            "| {name} | {start:.1} ms | {shortest:.1} ms | {first:.1} ms | {} |\n",
            binary(name)
        ));
    }
}

fn refusals_table(text: &mut String, results: &Results) {
    text.push_str("\n## When destinations refuse\n\n");
    let number = |scenario, number: fn(&Run) -> f64| {
        results.median(DISPATCH, scenario, number).unwrap_or_default()
    };
    let requests = number(Scenario::Refused, Run::sqs_requests_per_message);
    let cpu = number(Scenario::Refused, Run::cpu_us_per_event);
    text.push_str(&format!(
        "In batches of ten, each event gets a 503 and is sent to the retry queue. dispatch needs {cpu:.1} µs of CPU and {requests:.2} requests to SQS per event.\n\n"
    ));
    text.push_str(&format!(
        "| one invocation of {MANY_RECORDS} records | peak memory |\n|---|---|\n"
    ));
    for (outcome, topic) in [
        ("all accepted", Topic::Accepted),
        ("all refused once and sent to the retry queue", Topic::Refused),
        (
            "all refused six times, with five waits in the same invocation, then dead-lettered",
            Topic::RefusedSixTimes,
        ),
    ] {
        text.push_str(&format!(
            "| {outcome} | {:.1} MiB |\n",
            number(Scenario::Many(topic), Run::peak_mib)
        ));
    }
}

fn instructions_table(text: &mut String, results: &Results) {
    text.push_str("\n## Instructions\n\n");
    if results.instructions.is_empty() {
        text.push_str("Not counted: valgrind is missing, or no native contender was measured.\n");
        return;
    }
    text.push_str(
        "callgrind counts the instructions per event at batch 10, but no kernel instructions.\n\n| | instructions per event |\n|---|---|\n",
    );
    for (name, per_event) in &results.instructions {
        text.push_str(&format!("| {name} | {per_event} |\n"));
    }
}
