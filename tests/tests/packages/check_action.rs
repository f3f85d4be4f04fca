//! `infra/check-action`: its steps run in bash as GitHub runs them, with the wheel of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{folder, printed, root, succeeded, wheel};

const VALID: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: shop, topic: orders, name: a}\n\
                     spec: {destination: {url: https://example.com/}}\n";

fn action() -> PathBuf {
    root().join("infra/check-action")
}

/// The action on a machine of GitHub: the folder of a repository, and one for files of a job.
struct Job {
    repository: PathBuf,
    temporary: PathBuf,
    definition: Value,
}

impl Job {
    fn new(name: &str) -> Self {
        let text = fs::read_to_string(action().join("action.yml")).expect("the action is there");
        let definition = serde_saphyr::from_str(&text).expect("an action is YAML");
        let [repository, temporary] =
            ["repository", "temporary"].map(|part| folder(&format!("{name}-{part}")));
        Self { repository, temporary, definition }
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.repository.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, content).expect("a file can be written");
    }

    /// The value of `${{ inputs.NAME }}`: the given one, else the default.
    fn input<'a>(&'a self, expression: &str, given: &[(&str, &'a str)]) -> &'a str {
        let name = expression.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}"));
        let name = name.unwrap_or_else(|| panic!("{expression} is no input"));
        let input = &self.definition["inputs"][name];
        assert!(input.is_object(), "no input {name}");
        let given = given.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        given.unwrap_or_else(|| {
            input["default"].as_str().unwrap_or_else(|| panic!("{name} is required"))
        })
    }

    /// Runs the steps up to the first that fails.
    fn run(&self, inputs: &[(&str, &str)]) -> Output {
        let steps = self.definition["runs"]["steps"].as_array().expect("a list");
        let mut last = None;
        for step in steps {
            assert_eq!(step["shell"], "bash");
            let script = step["run"].as_str().expect("a script");
            // An expression in a script would run what an input has in it.
            assert!(!script.contains("${{"), "{script}");
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
            bash.current_dir(&self.repository).env("RUNNER_TEMP", &self.temporary);
            bash.env("GITHUB_ACTION_PATH", action());
            for (name, expression) in step["env"].as_object().expect("variables") {
                bash.env(name, self.input(expression.as_str().expect("a text"), inputs));
            }
            let output = bash.output().expect("bash starts");
            if !output.status.success() {
                return output;
            }
            last = Some(output);
        }
        last.expect("an action has steps")
    }
}

fn sha256(path: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(path).expect("a file")))
}

/// Each finding that the pattern of the action matches, as file|line|column|severity|message.
fn findings(python: &Path, output: &str) -> String {
    const FIND: &str = "import json, re, sys\n\
        pattern = json.load(open(sys.argv[1]))['problemMatcher'][0]['pattern'][0]\n\
        fields = ['file', 'line', 'column', 'severity', 'message']\n\
        for line in sys.argv[2].splitlines():\n\
        \x20   if match := re.search(pattern['regexp'], line): print(*(match[pattern[field]] for field in fields), sep='|')";
    let matcher = action().join("findings.json");
    succeeded(Command::new(python).args(["-c", FIND]).arg(matcher).arg(output))
}

#[test]
fn valid_files_pass_and_findings_are_shown_where_they_are() {
    let Some((python, wheel)) = wheel::wheel("the check action") else { return };
    let job = Job::new("action");
    let (package, digest) = (wheel.display().to_string(), sha256(&wheel));
    let digests = format!("{} {digest}", "0".repeat(64));
    let inputs = [("package", &*package), ("sha256", &*digests)];
    job.write("subscriptions/a.yaml", VALID);
    let output = job.run(&inputs);
    assert!(output.status.success(), "{}", printed(&output));
    let matcher = format!("::add-matcher::{}", action().join("findings.json").display());
    assert!(printed(&output).contains(&matcher), "{}", printed(&output));

    job.write("more files/b.yaml", &VALID.replace("url: ", "ulr: ").replace("name: a", "name: b"));
    let files = [inputs[0], inputs[1], ("files", "subscriptions/\nmore files/b.yaml\n")];
    let output = job.run(&files);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let found = findings(&python, &printed(&output));
    assert!(
        found.contains("more files/b.yaml|4|22|error|spec.destination.ulr: unknown field"),
        "{found}"
    );
}

#[test]
fn a_package_with_another_checksum_is_not_installed() {
    let Some((_, wheel)) = wheel::wheel("the checksum of the check action") else { return };
    let job = Job::new("action-checksum");
    let (package, digest) = (wheel.display().to_string(), "0".repeat(64));
    let output = job.run(&[("package", &package), ("sha256", &digest)]);
    assert!(!output.status.success());
    assert!(printed(&output).contains("DO NOT MATCH THE HASHES"), "{}", printed(&output));
    assert!(!job.temporary.join("lastmile/bin/lastmile").exists());
}
