//! `scripts/smoke-aws`, which a user runs in an account, on the emulated AWS: every step, with a receiver on this machine.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lastmile_tests::built::binary;
use lastmile_tests::libraries;

use super::stack::{ACCOUNT, Stack, build_folder};
use super::{Deployment, on_deployment};

/// The steps that cannot be done on the emulated AWS.
const SKIPPED: [&str; 3] = ["signature", "killed function", "log format"];
/// Fewer than a user publishes: 5 % are for a destination that hangs.
const EVENTS: &str = "200";
/// Calls of services for a function, which need no permission on the emulated AWS.
const BY_SERVICES: [&str; 7] = [
    "kms:Decrypt",
    "kms:GenerateDataKey",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
];

#[test]
fn a_smoke_run_has_no_failed_step_and_leaves_nothing_behind() {
    on_deployment(|Deployment { stack, .. }| async move {
        let output = smoke(stack, &["--events", EVENTS]).await;
        let page = String::from_utf8_lossy(&output.stdout);
        let progress = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}\n{progress}");
        assert!(steps(&page, "failed").is_empty(), "{page}");
        assert_eq!(steps(&page, "skipped"), SKIPPED, "{page}");
        assert_eq!(steps(&page, "ok").len(), 19, "{page}");
        assert!(page.contains("none is left") && !page.contains("Left behind"), "{page}");
        assert_were_used(stack, &page);
        // Past the test harness, which shows no output of tests that pass.
        writeln!(std::io::stderr(), "{page}").expect("standard error is writable");
    });
}

#[test]
fn a_smoke_run_with_a_failed_step_fails_and_prints_what_deletes_the_rest() {
    on_deployment(|Deployment { stack, .. }| async move {
        let output = smoke(stack, &["--lastmile", "no-such-program", "--keep"]).await;
        let page = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{page}");
        assert_eq!(steps(&page, "failed"), ["apply"], "{page}");
        assert!(page.contains("`no-such-program` is not installed"), "{page}");
        let (_, rest) = page.split_once(" --delete ").expect("the command that deletes the rest");
        let names: Vec<&str> = rest.lines().next().expect("a line").split(' ').collect();
        assert!(names.iter().any(|name| name.starts_with("bucket:")), "{names:?}");

        let output = script(stack, &[&["--delete"], names.as_slice()].concat()).await;
        let progress = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && progress.contains("none is left"), "{progress}");
        let output = script(stack, &["--delete", "kingdom:come"]).await;
        assert_eq!(output.status.code(), Some(1));
    });
}

/// Runs the smoke run with these options to its end.
async fn smoke(stack: &'static Stack, options: &[&str]) -> Output {
    let (release, program) = (release(), binary("lastmile"));
    let [release, program] = [&release, &program].map(|path| path.to_str().expect("a text"));
    let whole = ["--release", release, "--lastmile", program, "--local-receiver"];
    script(stack, &[&whole, options].concat()).await
}

/// Runs the script with these arguments to its end.
async fn script(stack: &'static Stack, arguments: &[&str]) -> Output {
    let python = libraries::python("the smoke run").expect("the emulated AWS needs it too");
    let programs = python.parent().expect("a folder of programs");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(&python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/smoke-aws"));
    command.args(["--region", "us-east-1"]).args(arguments);
    command.envs(stack.variables()).envs(ACCOUNT).env("PATH", path);
    command.env("SAM_CLI_TELEMETRY", "0").env("SAM_CLI_POLL_DELAY", "0.2");
    let run = tokio::task::spawn_blocking(move || command.output());
    run.await.expect("it ends").expect("the program runs")
}

/// The folder that the stack of the tests was deployed from.
fn release() -> PathBuf {
    std::env::var_os("LASTMILE_RELEASE").map_or_else(|| build_folder().join("release"), Into::into)
}

/// The names of the steps that ended so, by the table of the page.
fn steps(page: &str, state: &str) -> Vec<String> {
    let cells = page.lines().map(|line| line.split(" | ").collect::<Vec<_>>());
    let ended = cells.filter(|cells| cells.get(1) == Some(&state));
    ended.map(|cells| cells[0].trim_start_matches("| ").to_owned()).collect()
}

/// Each permission that the page lists as used is that of a call that the functions of a run have made. They may make
/// further ones that depend on time.
fn assert_were_used(stack: &Stack, page: &str) {
    let line = page.lines().find(|line| line.starts_with("Permissions of the functions that"));
    let (_, listed) = line.and_then(|line| line.split_once(": ")).expect("a list of permissions");
    let listed: BTreeSet<&str> = listed.trim_end_matches('.').split(", ").collect();
    let calls = stack.function_calls();
    let of_run = calls.iter().filter(|call| {
        let principal = call["principal"].as_str().expect("a call has a principal");
        principal.contains("lastmile-smoke-") && !principal.contains("-receiver-")
    });
    let mut called: BTreeSet<&str> = of_run.filter_map(|call| call["action"].as_str()).collect();
    called.extend(BY_SERVICES);
    let unused: Vec<_> = listed.difference(&called).collect();
    assert!(listed.len() > BY_SERVICES.len() && unused.is_empty(), "{unused:?} of {listed:?}");
}
