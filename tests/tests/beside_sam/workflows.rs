//! The sample workflow of GitHub, which checks and applies subscriptions with the roles of `infra/github.yaml`.
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
        (
            "apply",
            "push",
            "APPLY",
            "lastmile apply -f subscriptions/ --stack \"$STACK\" --owner \"$OWNER\" --prune --yes",
        ),
    ] {
        assert_eq!(sample["jobs"][job]["if"], format!("github.event_name == '{event}'"));
        assert_eq!(last_command(&sample, job), command);
        let assumed = steps(&sample, job).iter().map(|step| &step["with"]["role-to-assume"]);
        let assumed: Vec<&Value> = assumed.filter(|role| !role.is_null()).collect();
        assert_eq!(assumed, [&format!("${{{{ vars.LASTMILE_{role}_ROLE }}}}")], "{job}");
    }
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
