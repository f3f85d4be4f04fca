//! `BENCH.md`: the goals first, then the tables they come from.

use std::fmt::Write as _;
use std::path::Path;

use crate::contenders::{DEADLETTER, DISPATCH, FLOOR, NODE, PUT_LOOP, PYTHON};
use crate::events::{SUBSCRIPTIONS, Topic};
use crate::measure::Run;
use crate::results::{Results, Scene, ms};
use crate::{BATCHES, MANY_RECORDS, ROUNDS, goals, machine};

/// What numbers cannot say, kept by hand: what was left out, why a goal is missed, what a binary is
/// made of.
const NOTES: &str = include_str!("../notes.md");

/// The whole file.
pub(crate) fn report(results: &Results, binaries: &Path, load_before: &str) -> String {
    let mut text = String::from(
        "# Bench\n\nWritten by `bench/run`; do not edit. [bench/README.md](bench/README.md) says what is measured, and how.\n\n",
    );
    for line in machine::lines(load_before) {
        let _ = writeln!(text, "- {line}");
    }
    let _ = writeln!(
        text,
        "- Medians of {ROUNDS} rounds in which all take turns. CPU is the time of its threads on a processor"
    );
    goals_table(&mut text, results);
    let _ = writeln!(
        text,
        "\n## Delivering\n\n{SUBSCRIPTIONS} subscriptions; each event goes to one destination, which answers 204.\n"
    );
    contenders_table(&mut text, results, &[DISPATCH, FLOOR, "floor, many threads", NODE, PYTHON]);
    let _ = writeln!(text, "\n## Storing\n");
    contenders_table(&mut text, results, &[DEADLETTER, PUT_LOOP]);
    starts_table(&mut text, results, binaries);
    trouble_table(&mut text, results);
    instructions_table(&mut text, results);
    text.push('\n');
    text.push_str(NOTES);
    text
}

fn goals_table(text: &mut String, results: &Results) {
    text.push_str("\n## Goals\n\n| goal | bound | measured | |\n|---|---|---|---|\n");
    for goal in goals::goals(results) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            goal.what,
            goal.bound(),
            goal.measured(),
            goal.verdict()
        );
    }
}

fn contenders_table(text: &mut String, results: &Results, names: &[&str]) {
    text.push_str(
        "| | records | CPU per event | events per second | peak memory |\n|---|---|---|---|---|\n",
    );
    for batch in BATCHES {
        for name in names {
            let scene = Scene::Taken(batch);
            let number = |number: fn(&Run) -> f64| results.median(name, scene, number);
            let Some(cpu) = number(Run::cpu_us_per_event) else { continue };
            let speed = number(Run::events_per_second).unwrap_or_default();
            let memory = number(Run::peak_mib).unwrap_or_default();
            let _ =
                writeln!(text, "| {name} | {batch} | {cpu:.1} µs | {speed:.0} | {memory:.1} MiB |");
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
    for name in [DISPATCH, FLOOR, "floor, many threads", NODE, PYTHON, DEADLETTER, PUT_LOOP] {
        let Some((start, least)) = results.start_ms(name).zip(results.start_least_ms(name)) else {
            continue;
        };
        let first = results.median(name, Scene::Taken(1), |run| ms(run.first)).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {name} | {start:.1} ms | {least:.1} ms | {first:.1} ms | {} |",
            binary(name)
        );
    }
}

fn trouble_table(text: &mut String, results: &Results) {
    text.push_str("\n## When destinations refuse\n\n");
    let number = |scene, number: fn(&Run) -> f64| {
        results.median(DISPATCH, scene, number).unwrap_or_default()
    };
    let requests = number(Scene::Refused, Run::sqs_requests_per_message);
    let cpu = number(Scene::Refused, Run::cpu_us_per_event);
    let _ = writeln!(
        text,
        "Batches of ten, each answered 503 and sent on to the retry queue: {cpu:.1} µs of CPU and {requests:.2} requests to SQS per event.\n"
    );
    let _ = writeln!(text, "| one invocation of {MANY_RECORDS} records | peak memory |\n|---|---|");
    for (what, topic) in [
        ("all taken", Topic::Taken),
        ("all refused once and sent on", Topic::Refused),
        ("all refused six times, five waits in place, and buried", Topic::RefusedSixTimes),
    ] {
        let _ = writeln!(text, "| {what} | {:.1} MiB |", number(Scene::Many(topic), Run::peak_mib));
    }
}

fn instructions_table(text: &mut String, results: &Results) {
    text.push_str("\n## Instructions\n\n");
    if results.instructions().is_empty() {
        text.push_str("Not counted: no valgrind, or nobody whose instructions say much.\n");
        return;
    }
    text.push_str(
        "Per event at batch 10, by callgrind, without the kernel's.\n\n| | instructions per event |\n|---|---|\n",
    );
    for (name, per_event) in results.instructions() {
        let _ = writeln!(text, "| {name} | {per_event} |");
    }
}
