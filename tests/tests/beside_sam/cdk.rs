//! `infra/cdk`, compiled and synthesised by the AWS CDK. A failed check of the CDK is an error
//! here.
//!
//! The synthesised template must equal the released one, except for the location of the functions'
//! code. Nothing is deployed. On a machine without Node, the tests are reported as skipped.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lastmile_tests::libraries;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::root;

/// An app with only the construct and these parameters. For several choices, it prints the error of
/// each.
const BARE: &str = r#"
import { App, Stack } from "aws-cdk-lib";
import { Lastmile } from "./lastmile.js";
const stack = (parameters) => {
  const stack = new Stack(new App({ autoSynth: false }), "lastmile");
  new Lastmile(stack, "Lastmile", { release: "release", parameters });
  return stack;
};
const choices = JSON.parse(process.argv[2]);
if (choices.length === 1) stack(choices[0]).node.root.synth();
else for (const choice of choices) try { stack(choice); console.log("none"); } catch (error) { console.log(error.message); }
"#;

/// The parts that the CDK adds to a template: a check that the account was bootstrapped.
const ADDED: [(&str, &str); 2] =
    [("Parameters", "BootstrapVersion"), ("Rules", "CheckBootstrapVersion")];

/// The construct and its app, compiled, beside a release.
struct Project {
    folder: TempDir,
}

impl Project {
    /// `None`, reported as skipped, without Node.
    fn new() -> Option<Self> {
        let sources = root().join("infra/cdk");
        let installed = libraries::node("the CDK")?;
        let project = Self { folder: TempDir::new().expect("a folder can be made") };
        symlink(installed.join("node_modules"), project.path("node_modules")).expect("a link");
        for name in ["lastmile.ts", "app.ts", "package.json", "tsconfig.json"] {
            fs::copy(sources.join(name), project.path(name)).expect("a file can be copied");
        }
        fs::write(project.path("bare.js"), BARE).expect("a file can be written");
        let compiled = project.run("node_modules/.bin/tsc", &[]);
        assert!(compiled.status.success(), "{}", said(&compiled));
        project.write_release();
        Some(project)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the output of `scripts/release`, with empty functions.
    fn write_release(&self) {
        let infra = self.path("release/infra");
        fs::create_dir_all(&infra).expect("a folder can be made");
        let template = released();
        fs::write(self.path("release/template.yaml"), template).expect("a file can be written");
        fs::copy(root().join("infra/observability.yaml"), infra.join("observability.yaml"))
            .expect("a file can be copied");
        for name in ["dispatch", "deadletter", "ingress"] {
            let zip = self.path("release").join(name).with_extension("zip");
            fs::write(zip, name).expect("a file can be written");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        let context =
            json!({"release": "release", "@aws-cdk/core:validateAgainstDefaultRules": true});
        command.env("CDK_CONTEXT_JSON", context.to_string()).env("CDK_OUTDIR", "cdk.out");
        command.output().expect("the program starts")
    }

    /// Synthesises the construct with these parameters, or prints the error of each of several
    /// choices.
    fn bare(&self, choices: &Value) -> Output {
        self.run("node", &["bare.js", &choices.to_string()])
    }

    fn template(&self) -> Value {
        self.read(&self.path("cdk.out/lastmile.template.json"))
    }

    fn nested(&self) -> Value {
        let files = fs::read_dir(self.path("cdk.out")).expect("the output is a folder");
        let mut files = files.map(|entry| entry.expect("an entry").path());
        let is_nested = |path: &PathBuf| path.to_string_lossy().ends_with(".nested.template.json");
        self.read(&files.find(is_nested).expect("a nested template"))
    }

    fn read(&self, path: &Path) -> Value {
        let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&text).expect("a template is JSON")
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

fn released() -> String {
    let script = root().join("scripts/release-template");
    let output = Command::new(script).arg("arm64").output().expect("the script runs");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("a template is text")
}

/// Converts a template to the form of a template that is read without tags. `{"Ref": name}` becomes
/// the name, and `{"Fn::If": list}` the list. Numbers and booleans become text, because
/// CloudFormation accepts either.
fn untagged(value: &Value) -> Value {
    let function = |(name, argument): (&String, &Value)| {
        let is_condition = name == "Condition" && argument.is_string();
        (name == "Ref" || name.starts_with("Fn::") || is_condition).then(|| untagged(argument))
    };
    match value {
        Value::Object(members) if members.len() == 1 => {
            members.iter().next().and_then(function).unwrap_or_else(|| {
                members.iter().map(|(name, member)| (name.clone(), untagged(member))).collect()
            })
        }
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), untagged(member))).collect()
        }
        Value::Array(list) => list.iter().map(untagged).collect(),
        Value::Bool(_) | Value::Number(_) => json!(value.to_string()),
        Value::Null | Value::String(_) => value.clone(),
    }
}

/// Returns each text of a template with its path, so that a difference is one line.
fn lines(template: &Value) -> BTreeSet<String> {
    fn add(place: &str, value: &Value, lines: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                members
                    .iter()
                    .for_each(|(name, member)| add(&format!("{place}/{name}"), member, lines));
            }
            Value::Array(names) if place.ends_with("/DependsOn") => {
                names.iter().for_each(|name| add(place, name, lines));
            }
            Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(at, element)| add(&format!("{place}/{at}"), element, lines));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                lines.insert(format!("{place} {value}"));
            }
        }
    }
    let mut lines = BTreeSet::new();
    add("", &untagged(template), &mut lines);
    lines
}

fn assert_same(synthesised: &Value, released: &str) {
    let released: Value = serde_saphyr::from_str(released).expect("a template is YAML");
    let (synthesised, released) = (lines(synthesised), lines(&released));
    let difference: Vec<_> = synthesised.symmetric_difference(&released).collect();
    assert!(difference.is_empty(), "{difference:#?}");
}

fn members<'a>(template: &'a mut Value, section: &str) -> &'a mut Map<String, Value> {
    template[section].as_object_mut().unwrap_or_else(|| panic!("no {section}"))
}

/// Removes the additions of the CDK and restores the locations of the functions. Their zips must be
/// assets.
fn without_assets(mut template: Value) -> Value {
    for (section, name) in ADDED {
        members(&mut template, section).remove(name).expect("the CDK adds it");
    }
    for (name, file) in [
        ("DispatchFunction", "dispatch.zip"),
        ("DeadLetterFunction", "deadletter.zip"),
        ("IngressFunction", "ingress.zip"),
    ] {
        let function = &mut template["Resources"][name];
        let code = function["Properties"]["CodeUri"].take();
        assert!(code["Key"].as_str().is_some_and(|key| key.ends_with(".zip")), "{name}: {code}");
        function["Properties"]["CodeUri"] = json!(file);
        let function = function.as_object_mut().expect("a resource");
        function.remove("Metadata");
    }
    let nested = template["Resources"]["ObservabilityStack"].as_object_mut().expect("a resource");
    for added in ["Metadata", "UpdateReplacePolicy", "DeletionPolicy"] {
        nested.remove(added);
    }
    nested["Properties"]["TemplateURL"] = json!("infra/observability.yaml");
    template
}

#[test]
fn the_synthesised_template_is_that_of_the_release() {
    let Some(project) = Project::new() else { return };
    let done = project.bare(&json!([{}]));
    assert!(done.status.success(), "{}", said(&done));
    assert_same(&without_assets(project.template()), &released());
    let nested = fs::read_to_string(root().join("infra/observability.yaml")).expect("a template");
    assert_same(&project.nested(), &nested);
}

#[test]
fn a_parameter_that_is_given_is_in_the_template_where_it_is_referred_to() {
    let Some(project) = Project::new() else { return };
    let secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop-??????";
    let key = "arn:aws:kms:eu-west-1:123456789012:key/2c5f4d3e-1a0b-4c8d-9e7f-6a5b4c3d2e1f";
    let given = json!({"DispatchMemory": 512, "LogLevel": "failures",
        "SecretArns": [secret], "PublisherArns": [], "KmsKeyArn": key, "DispatchBatchWindow": 1, "DispatchTimeout": 60});
    let done = project.bare(&json!([given]));
    assert!(done.status.success(), "{}", said(&done));
    let mut template = project.template();
    for name in given.as_object().expect("members").keys() {
        assert_eq!(members(&mut template, "Parameters").get(name), None);
    }
    let outputs = &template["Outputs"];
    assert_eq!(outputs["SecretArns"]["Value"], secret);
    assert_eq!(outputs["DispatchMemory"]["Value"], "512");
    assert_eq!(outputs["PublisherArns"], Value::Null);
    let dispatch = &template["Resources"]["DispatchFunction"]["Properties"];
    assert_eq!(dispatch["MemorySize"], 512);
    let visibility = &template["Resources"]["EventsQueue"]["Properties"]["VisibilityTimeout"];
    assert_eq!(visibility["Fn::FindInMap"][1], "60");
    let logged = &dispatch["Environment"]["Variables"]["LOG_DELIVERIES"];
    assert_eq!(*logged, json!({"Fn::FindInMap": ["LogLevels", "failures", "Deliveries"]}));
    let conditions = &template["Conditions"];
    let is_there = |text: &str| json!({"Fn::Not": [{"Fn::Equals": [text, ""]}]});
    assert_eq!(conditions["HasSecrets"], is_there(secret));
    assert_eq!(conditions["HasPublishers"], is_there(""));
    assert_eq!(conditions["HasKmsKey"], is_there(key));
}

#[test]
fn a_value_that_cloudformation_would_refuse_is_refused() {
    let Some(project) = Project::new() else { return };
    let refused = [
        (
            json!({"Concurrency": 30}),
            "parameter Concurrency: 30 is not 10, 20, 50, 100, 200, 500, 1000, 2000",
        ),
        (json!({"DispatchMemory": "ten"}), "parameter DispatchMemory: \"ten\" is not 128 to 10240"),
        (
            json!({"EventsPollers": "1-10"}),
            "parameter EventsPollers: \"1-10\" is not MINIMUM-MAXIMUM, such as 2-10, of 2 to 200 and 2 to 2000, or empty",
        ),
        (
            json!({"DispatchTimeout": 100}),
            "parameter DispatchTimeout: 100 is not 20, 30, 60, 120, 180, 300, 600, 900",
        ),
        (
            json!({"LogLevel": "none"}),
            "parameter LogLevel: \"none\" is not error, warn, failures, info, debug, trace",
        ),
        (
            json!({"DefaultTopic": "orders"}),
            "parameter DefaultTopic: \"orders\" is not namespace/topic, or empty",
        ),
        (json!({"SecretArns": "arn"}), "parameter SecretArns: \"arn\" is not a list"),
        (
            json!({"GradualDeployment": "a"}),
            "cdk deploy --parameters GradualDeployment=NAME names a deployment",
        ),
        (json!({"Memory": 512}), "Parameter with name 'Memory' was not found in the template"),
    ];
    let choices: Value = refused.iter().map(|(given, _)| given.clone()).collect();
    let done = project.bare(&choices);
    assert!(done.status.success(), "{}", said(&done));
    let output = String::from_utf8_lossy(&done.stdout);
    let errors: Vec<&str> = output.lines().collect();
    let expected: Vec<&str> = refused.iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, expected);
}

#[test]
fn a_checkout_where_nothing_is_built_is_refused() {
    let Some(project) = Project::new() else { return };
    fs::remove_file(project.path("release/dispatch.zip")).expect("a file can be removed");
    let done = project.bare(&json!([{}]));
    assert!(!done.status.success());
    assert!(said(&done).contains("release/dispatch.zip"), "{}", said(&done));
}

#[test]
fn the_sample_publishes_and_notifies() {
    let Some(project) = Project::new() else { return };
    let done = project.run("node", &["app.js"]);
    assert!(done.status.success(), "{}", said(&done));
    let template = project.template();
    let resources = template["Resources"].as_object().expect("resources");
    let of_type =
        |kind: &'static str| resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
    let (topic, _) = of_type("AWS::SNS::Topic").next().expect("a topic");
    let observability = &resources["ObservabilityStack"]["Properties"]["Parameters"];
    assert_eq!(observability["AlarmTopicArn"], json!({"Ref": topic}));
    assert_eq!(template["Outputs"]["AlarmTopicArn"]["Value"], json!({"Ref": topic}));
    let actions = &resources["LastResortAlarm"]["Properties"]["AlarmActions"];
    let notified = json!(["HasAlarmTopic", {"Ref": topic}, {"Ref": "AWS::NoValue"}]);
    assert_eq!(actions[0]["Fn::If"], notified);
    // No condition may refer to the topic, because CloudFormation refuses conditions that refer to
    // resources.
    let is_set = json!({"Fn::Not": [{"Fn::Equals": ["given", ""]}]});
    assert_eq!(template["Conditions"]["HasAlarmTopic"], is_set);
    assert!(!template["Conditions"].to_string().contains(topic.as_str()), "{template:#}");
    let (_, publisher) = of_type("AWS::Lambda::Function").next().expect("a function");
    let variables = &publisher["Properties"]["Environment"]["Variables"];
    assert_eq!(variables["EVENTS_QUEUE_URL"], json!({"Ref": "EventsQueue"}));
    let (_, policy) = of_type("AWS::IAM::Policy").next().expect("a policy");
    let [statement] =
        &policy["Properties"]["PolicyDocument"]["Statement"].as_array().expect("a list")[..]
    else {
        panic!("{policy:#}")
    };
    let actions: Vec<_> = statement["Action"].as_array().expect("a list").iter().collect();
    assert!(actions.contains(&&json!("sqs:SendMessage")), "{statement:#}");
    assert_eq!(statement["Resource"], json!({"Fn::GetAtt": ["EventsQueue", "Arn"]}));
}
