//! The workflows of GitHub: the sample, which checks and applies subscriptions with the roles of `infra/github.yaml`, and that
//! of a release.
//!
//! Read, not run. Whether the commands are ones that the program accepts is tested in the program, and
//! whether the roles are enough for them on the emulated AWS.

use std::fs;
use std::path::PathBuf;

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

/// The files that name actions of others.
fn files_with_actions() -> Vec<PathBuf> {
    let folders = [".github/workflows", "examples/gitops", "infra/check-action"];
    let files = folders.iter().flat_map(|folder| {
        fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"))
    });
    files.map(|entry| entry.expect("an entry").path()).collect()
}

/// A tag can be moved to other code, a commit cannot.
#[test]
fn an_action_of_others_is_named_by_its_commit_with_its_version_beside_it() {
    let mut seen = 0;
    for file in files_with_actions() {
        let text = fs::read_to_string(&file).expect("a file is text");
        for action in text.lines().filter_map(|line| line.split_once("uses: ")) {
            let (_, reference) = action.1.split_once('@').expect("an action has a version");
            let (commit, version) = reference.split_once(" # v").unwrap_or((reference, ""));
            let is_commit =
                commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit && !version.is_empty(), "{}: {}", file.display(), action.1);
            seen += 1;
        }
    }
    assert!(seen >= 9, "{seen} actions");
}

/// A tag of an image can be moved as well. A digest is that of its content.
#[test]
fn an_image_is_named_by_its_digest() {
    for name in ["ci", "nightly", "release"] {
        let workflow = workflow(&format!(".github/workflows/{name}.yaml"));
        let jobs = workflow["jobs"].as_object().expect("a workflow has jobs");
        let images: Vec<&str> = jobs.values().filter_map(|job| job["container"].as_str()).collect();
        assert_eq!(images.len(), 1, "{name}");
        let (_, digest) = images[0].split_once("@sha256:").expect("an image has a digest");
        assert!(
            digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{name}"
        );
    }
}

/// The place of the step with this text in what it runs or uses.
fn step(steps: &[Value], text: &str) -> usize {
    let has = |value: &Value| value.as_str().is_some_and(|value| value.contains(text));
    let found = steps.iter().position(|step| has(&step["run"]) || has(&step["uses"]));
    found.unwrap_or_else(|| panic!("no step with {text}"))
}

#[test]
fn a_release_is_not_made_without_the_advisories() {
    let release = workflow(".github/workflows/release.yaml");
    let steps = steps(&release, "release");
    let advisories = step(steps, "cargo deny --locked check");
    assert!(advisories < step(steps, "scripts/release"));
    let command = steps[advisories]["run"].as_str().expect("a command");
    assert!(command.ends_with(" advisories"), "{command}");
    // Nothing lets the job go on after a failure.
    assert!(!command.contains("||") && !command.contains(';') && !command.contains('\n'));
    assert_eq!(steps[advisories].as_object().expect("a step").len(), 1);
    assert_eq!(release["jobs"]["release"]["continue-on-error"], Value::Null);
}

#[test]
fn what_was_uploaded_is_signed_by_a_job_that_builds_nothing() {
    let release = workflow(".github/workflows/release.yaml");
    assert_eq!(release["permissions"], json!({"contents": "read"}));
    assert_eq!(release["jobs"]["release"]["permissions"], Value::Null);
    let sign = &release["jobs"]["sign"];
    assert_eq!(sign["needs"], "release");
    assert_eq!(sign["permissions"], json!({"id-token": "write", "attestations": "write"}));
    let (made, signed) = (steps(&release, "release"), steps(&release, "sign"));
    let upload = &made[step(made, "upload-artifact")]["with"];
    let download = &signed[step(signed, "download-artifact")]["with"];
    assert_eq!((&upload["name"], &upload["path"]), (&download["name"], &download["path"]));
    let attest = step(signed, "attest-build-provenance");
    assert!(step(signed, "sha256sum --check --strict SHA256SUMS") < attest);
    assert_eq!(signed[attest]["with"], json!({"subject-checksums": "release/SHA256SUMS"}));
}
