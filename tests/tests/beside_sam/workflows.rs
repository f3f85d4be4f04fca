//! Workflows of GitHub: those of this repository, and the sample that checks and applies subscriptions with the roles
//! of `infra/github.yaml`.
//!
//! Read, not run. Whether the commands are ones that the program accepts is tested in the program, and
//! whether the roles are enough for them on the emulated AWS.

use std::fs;

use serde_json::{Value, json};

use crate::root;

/// A workflow, with its aliases resolved.
fn workflow(path: &str) -> Value {
    let text =
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The steps of a job.
fn steps<'a>(workflow: &'a Value, job: &str) -> &'a [Value] {
    workflow["jobs"][job]["steps"].as_array().unwrap_or_else(|| panic!("no job {job}"))
}

/// Each action that steps use, with its version.
fn actions(steps: &[Value]) -> Vec<(&str, &str)> {
    let uses = steps.iter().filter_map(|step| step["uses"].as_str());
    uses.map(|action| action.split_once('@').expect("an action has a version")).collect()
}

/// The last command of a job.
fn last_command<'a>(workflow: &'a Value, job: &str) -> &'a str {
    let last = steps(workflow, job).last().expect("a job has steps");
    last["run"].as_str().expect("the last step is a command")
}

#[test]
fn a_pull_request_checks_and_the_branch_applies_each_with_its_own_role() {
    let sample = workflow("examples/gitops/subscriptions.yml");
    assert_eq!(sample["on"]["push"]["branches"], json!(["main"]));
    assert_eq!(sample["on"]["push"]["paths"], sample["on"]["pull_request"]["paths"]);
    assert_eq!(sample["permissions"], json!({"contents": "read", "id-token": "write"}));
    for (job, event, role, command) in [
        ("check", "pull_request", "CHECK", "lastmile check -f subscriptions/ --stack \"$STACK\""),
        ("apply", "push", "APPLY", "lastmile apply -f subscriptions/ --stack \"$STACK\" --yes"),
    ] {
        assert_eq!(sample["jobs"][job]["if"], format!("github.event_name == '{event}'"));
        assert_eq!(last_command(&sample, job), command);
        let steps = steps(&sample, job);
        let actions = actions(steps);
        assert_eq!(
            actions,
            [("actions/checkout", "v4"), ("aws-actions/configure-aws-credentials", "v4")]
        );
        let assume = &steps[steps.len() - 2]["with"]["role-to-assume"];
        assert_eq!(*assume, format!("${{{{ vars.LASTMILE_{role}_ROLE }}}}"));
    }
    assert_eq!(sample["jobs"].as_object().map(serde_json::Map::len), Some(2));
}

#[test]
fn what_is_installed_has_the_checksum_that_was_looked_at() {
    let sample = workflow("examples/gitops/subscriptions.yml");
    let install = |job| steps(&sample, job)[1]["run"].as_str().expect("it is a command");
    assert_eq!(install("check"), install("apply"));
    let lines: Vec<&str> = install("check").lines().collect();
    assert!(lines[0].starts_with("curl --fail "), "{lines:#?}");
    assert_eq!(lines[1], "echo \"$SHA256  lastmile.tar.gz\" | sha256sum --check");
}

#[test]
fn each_role_is_for_one_event_of_one_repository() {
    let roles = workflow("infra/github.yaml");
    for (role, subject) in [
        ("CheckRole", "repo:${Repository}:pull_request"),
        ("ApplyRole", "repo:${Repository}:ref:refs/heads/${Branch}"),
    ] {
        let trust =
            &roles["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]["Statement"];
        let [statement] = &trust.as_array().expect("a list")[..] else { panic!("{trust:#}") };
        assert_eq!(statement["Action"], "sts:AssumeRoleWithWebIdentity");
        let host = "token.actions.githubusercontent.com";
        let claims =
            json!({format!("{host}:aud"): "sts.amazonaws.com", format!("{host}:sub"): subject});
        assert_eq!(statement["Condition"], json!({"StringEquals": claims}));
    }
}

#[test]
fn our_workflows_prepare_a_machine_and_run_what_every_machine_can_run() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let rust = rust.expect("the manifest states a version").trim_matches('"');
    for (job, script) in
        [("ci", ".ci/run"), ("nightly", "tests/nightly"), ("release", "scripts/release")]
    {
        let workflow = workflow(&format!(".github/workflows/{job}.yaml"));
        assert_eq!(workflow["permissions"], json!({"contents": "read"}), "{job}");
        assert_eq!(workflow["jobs"][job]["container"], format!("rust:{rust}-trixie"));
        let runs = steps(&workflow, job).iter().filter_map(|step| step["run"].as_str());
        let prepares = |run: &&str| {
            ["rustup ", "apt-get ", "git config "].iter().any(|tool| run.starts_with(tool))
        };
        let rest: Vec<&str> = runs.filter(|run| !prepares(run)).collect();
        let [run] = rest[..] else { panic!("{job}: {rest:?}") };
        let program = run.split(' ').next().expect("a program");
        assert_eq!(program, script);
        assert!(root().join(program).is_file(), "{program}");
        let ours = |(name, version): &(&str, &str)| {
            name.starts_with("actions/") && version.starts_with('v')
        };
        assert!(actions(steps(&workflow, job)).iter().all(ours), "{job}");
    }
}
