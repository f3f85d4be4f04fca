//! The calls of AWS in the code and the permissions in `template.yaml`: no call without a permission, and
//! no permission without a call.
//!
//! The calls are found in the source, by the names of the operations that the AWS SDKs have. Whether a role
//! allows a call on the right resource is another question: `tests/tests/rules/template/access.rs` and
//! `tests/tests/emulated_aws/permissions.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use syn::visit::{self, Visit};
use syn::{ExprMethodCall, Item, LitStr};

use super::modules::{attributes, crates, is_for_tests, is_test_file};
use super::{metadata, package};

/// What is compiled into the functions and may call AWS.
const SOURCES: [&str; 4] =
    ["crates/adapters", "functions/dispatch", "functions/deadletter", "functions/ingress"];

const DISPATCH: &str = "DispatchRole";
const DEADLETTER: &str = "DeadLetterRole";
const INGRESS: &str = "IngressRole";
const ALL: &[&str] = &[DISPATCH, DEADLETTER, INGRESS];
const BOTH: &[&str] = &[DISPATCH, DEADLETTER];
const WITH_SECRETS: &[&str] = &[DISPATCH, INGRESS];
const ONLY_DISPATCH: &[&str] = &[DISPATCH];

/// Who makes a call.
#[derive(Debug, Clone, Copy)]
enum By {
    /// The code, by these operations of an SDK.
    Operations(&'static [&'static str]),
    /// The code, by this method of a request.
    Parameter(&'static str),
    /// The extension for secrets, when the code asks it for this path.
    Extension(&'static str),
    /// Lambda or another service, with the function's role.
    Service,
}

/// Each permission: its action, the roles that have it, and who makes the calls that need it.
const PERMISSIONS: [(&str, &[&str], By); 24] = [
    ("s3:GetObject", ONLY_DISPATCH, By::Operations(&["get_object"])),
    ("s3:GetObjectVersion", ONLY_DISPATCH, By::Parameter("version_id")),
    ("s3:PutObject", BOTH, By::Operations(&["put_object"])),
    // S3 asks for it before it says that an object is missing.
    ("s3:ListBucket", ONLY_DISPATCH, By::Operations(&["get_object"])),
    ("s3:ListBucketVersions", ONLY_DISPATCH, By::Operations(&["list_object_versions"])),
    ("sqs:SendMessage", ALL, By::Operations(&["send_message", "send_message_batch"])),
    ("sqs:ChangeMessageVisibility", BOTH, By::Operations(&["change_message_visibility"])),
    // The event source mappings.
    ("sqs:ReceiveMessage", BOTH, By::Service),
    ("sqs:DeleteMessage", BOTH, By::Service),
    ("sqs:GetQueueAttributes", BOTH, By::Service),
    ("logs:CreateLogStream", ALL, By::Service),
    ("logs:PutLogEvents", ALL, By::Service),
    ("secretsmanager:GetSecretValue", WITH_SECRETS, By::Extension("secretsmanager/get")),
    ("ssm:GetParameter", WITH_SECRETS, By::Extension("systemsmanager/parameters/get")),
    ("sts:AssumeRole", ONLY_DISPATCH, By::Operations(&["assume_role"])),
    ("sts:GetWebIdentityToken", ONLY_DISPATCH, By::Operations(&["get_web_identity_token"])),
    // The network interfaces of a function in a VPC.
    ("ec2:CreateNetworkInterface", ONLY_DISPATCH, By::Service),
    ("ec2:DescribeNetworkInterfaces", ONLY_DISPATCH, By::Service),
    ("ec2:DescribeSubnets", ONLY_DISPATCH, By::Service),
    ("ec2:DeleteNetworkInterface", ONLY_DISPATCH, By::Service),
    ("ec2:AssignPrivateIpAddresses", ONLY_DISPATCH, By::Service),
    ("ec2:UnassignPrivateIpAddresses", ONLY_DISPATCH, By::Service),
    // SQS and S3, for what the functions read and write; and the stores of secrets.
    ("kms:Decrypt", ALL, By::Service),
    ("kms:GenerateDataKey", ALL, By::Service),
];

/// Operations that only the command line asks for, and the method of `Storage` that leads to each.
/// Catalogues have them too.
const OF_OPERATORS: [(&str, &str); 4] = [
    ("list_objects_v2", "list_page"),
    ("list_objects_v2", "namespaces"),
    ("delete_objects", "delete"),
    ("delete_objects", "collect_garbage"),
];

/// The methods that source calls, those without arguments apart, and the texts in it.
#[derive(Default)]
struct Source {
    without_arguments: BTreeSet<String>,
    /// Outside the module of storage.
    called: BTreeSet<String>,
    all_called: BTreeSet<String>,
    texts: BTreeSet<String>,
    is_storage: bool,
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        if call.args.is_empty() {
            self.without_arguments.insert(name.clone());
        }
        if !self.is_storage {
            self.called.insert(name.clone());
        }
        self.all_called.insert(name);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.texts.insert(text.value());
    }
}

fn source() -> Source {
    let mut source = Source::default();
    for (_, files) in crates().iter().filter(|(name, _)| SOURCES.contains(&name.as_str())) {
        for (file, text) in files.iter().filter(|(file, _)| !is_test_file(file)) {
            source.is_storage = file.starts_with("storage/") || file == "live_catalogue/objects.rs";
            source.visit_file(&syn::parse_file(text).expect("a file of source is Rust"));
        }
    }
    source
}

/// The operations of every AWS SDK that the adapters depend on.
fn operations() -> BTreeSet<String> {
    let metadata = metadata();
    let adapters = package(&metadata, "adapters");
    let sdks = adapters.dependencies.iter().filter(|of| of.name.starts_with("aws-sdk-"));
    let mut found = BTreeSet::new();
    for sdk in sdks {
        let of_name = |package: &&cargo_metadata::Package| package.name.as_str() == sdk.name;
        let sdk = metadata.packages.iter().find(of_name).expect("a dependency is resolved");
        let folder = sdk.manifest_path.parent().expect("a folder").join("src/operation");
        for entry in fs::read_dir(&folder).expect("an SDK has operations") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            found.extend(name.strip_suffix(".rs").map(ToOwned::to_owned));
        }
    }
    found
}

/// The actions that a role of the template allows.
fn allowed(role: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let text = fs::read_to_string(path).expect("the template is there");
    let template: Value = serde_saphyr::from_str(&text).expect("the template is YAML");
    let mut statements = Vec::new();
    let policies = &template["Resources"][role]["Properties"]["Policies"];
    collect_statements(policies, &mut statements);
    let allows = statements.into_iter().filter(|statement| statement["Effect"] == "Allow");
    let mut actions = BTreeSet::new();
    for statement in allows {
        let action = &statement["Action"];
        let several = action.as_array().map_or(std::slice::from_ref(action), Vec::as_slice);
        actions.extend(several.iter().filter_map(Value::as_str).map(ToOwned::to_owned));
    }
    actions
}

/// All statements in here, whatever their conditions.
fn collect_statements<'a>(value: &'a Value, into: &mut Vec<&'a Value>) {
    if value.get("Effect").is_some() {
        into.push(value);
        return;
    }
    let within: Vec<&Value> = match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(members) => members.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    within.into_iter().for_each(|value| collect_statements(value, into));
}

#[test]
fn a_role_allows_what_its_function_calls_and_nothing_else() {
    for role in ALL {
        let needed = PERMISSIONS.iter().filter(|(_, roles, _)| roles.contains(role));
        let needed: BTreeSet<String> = needed.map(|(action, ..)| (*action).to_owned()).collect();
        assert_eq!(allowed(role), needed, "{role}");
    }
}

#[test]
fn every_call_of_aws_needs_a_known_permission() {
    let operations = operations();
    assert!(operations.contains("send_message_batch") && operations.contains("get_object"));
    let known = PERMISSIONS.iter().flat_map(|(.., by)| match by {
        By::Operations(operations) => *operations,
        By::Parameter(_) | By::Extension(_) | By::Service => &[],
    });
    let known: BTreeSet<&str> = known.copied().chain(OF_OPERATORS.map(|(of, _)| of)).collect();
    let source = source();
    let called: BTreeSet<&str> =
        source.without_arguments.intersection(&operations).map(String::as_str).collect();
    assert_eq!(called, known, "calls in the code, and calls that PERMISSIONS knows");
    for (operation, method) in OF_OPERATORS {
        assert!(!source.called.contains(method), "{method} needs a permission for {operation}");
    }
}

#[test]
fn every_permission_is_used() {
    let source = source();
    for (action, _, by) in PERMISSIONS {
        let is_used = match by {
            By::Operations(operations) => {
                operations.iter().all(|operation| source.without_arguments.contains(*operation))
            }
            By::Parameter(name) => source.all_called.contains(name),
            By::Extension(path) => source.texts.contains(path),
            By::Service => true,
        };
        assert!(is_used, "nothing needs {action}: {by:?}");
    }
}
