//! The calls of AWS in the code and the permissions in `template.yaml`. Each call needs a
//! permission, and each permission a call.
//!
//! The test finds calls in the source, including the arguments of macros, by the names of the
//! operations of the AWS SDKs. Other tests check that a role allows a call on the right resource:
//! `tests/tests/rules/template/access.rs` and `tests/tests/emulated_aws/permissions.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use syn::visit::{self, Visit};
use syn::{ExprMethodCall, ImplItemFn, Item, ItemFn, LitStr, Macro, TraitItemFn};

use super::modules::{attributes, crates, is_for_tests, is_test_file};
use super::{metadata, package};

/// The packages that are compiled into the functions and may call AWS.
const SOURCES: [&str; 4] =
    ["crates/adapters", "functions/dispatch", "functions/deadletter", "functions/ingress"];

const DISPATCH: &str = "DispatchRole";
const DEADLETTER: &str = "DeadLetterRole";
const INGRESS: &str = "IngressRole";
const ALL: &[&str] = &[DISPATCH, DEADLETTER, INGRESS];
const BOTH: &[&str] = &[DISPATCH, DEADLETTER];
const WITH_SECRETS: &[&str] = &[DISPATCH, INGRESS];
const ONLY_DISPATCH: &[&str] = &[DISPATCH];

/// The caller that needs a permission.
#[derive(Debug, Clone, Copy)]
enum By {
    /// The code, through these operations of an SDK.
    Operations(&'static [&'static str]),
    /// The code, through this method of a request.
    Parameter(&'static str),
    /// The extension for secrets, when the code requests this path.
    Extension(&'static str),
    /// Lambda or another service, with the function's role.
    Service,
}

/// The permissions: the action, the roles that have it, and the caller that needs it.
const PERMISSIONS: [(&str, &[&str], By); 30] = [
    ("dynamodb:GetItem", ONLY_DISPATCH, By::Operations(&["get_item"])),
    ("dynamodb:Query", ONLY_DISPATCH, By::Operations(&["query"])),
    ("dynamodb:UpdateItem", ONLY_DISPATCH, By::Operations(&["update_item"])),
    ("s3:GetObject", ONLY_DISPATCH, By::Operations(&["get_object"])),
    ("s3:GetObjectVersion", ONLY_DISPATCH, By::Parameter("version_id")),
    ("s3:PutObject", BOTH, By::Operations(&["put_object"])),
    ("s3:PutObjectTagging", BOTH, By::Parameter("set_tagging")),
    // Without this permission, S3 does not report that an object is missing.
    ("s3:ListBucket", ONLY_DISPATCH, By::Operations(&["list_objects_v2"])),
    ("s3:ListBucketVersions", ONLY_DISPATCH, By::Operations(&["list_object_versions"])),
    ("sqs:SendMessage", ALL, By::Operations(&["send_message", "send_message_batch"])),
    ("sqs:ChangeMessageVisibility", BOTH, By::Operations(&["change_message_visibility"])),
    // The event source mappings make these calls.
    ("sqs:ReceiveMessage", BOTH, By::Service),
    ("sqs:DeleteMessage", BOTH, By::Service),
    ("sqs:GetQueueAttributes", BOTH, By::Service),
    ("logs:CreateLogStream", ALL, By::Service),
    ("logs:PutLogEvents", ALL, By::Service),
    ("secretsmanager:GetSecretValue", WITH_SECRETS, By::Extension("secretsmanager/get")),
    ("ssm:GetParameter", WITH_SECRETS, By::Extension("systemsmanager/parameters/get")),
    ("sts:AssumeRole", ONLY_DISPATCH, By::Operations(&["assume_role"])),
    ("sts:GetWebIdentityToken", ONLY_DISPATCH, By::Operations(&["get_web_identity_token"])),
    // Lambda creates the network interfaces of a function in a VPC.
    ("ec2:CreateNetworkInterface", ONLY_DISPATCH, By::Service),
    ("ec2:DescribeNetworkInterfaces", ONLY_DISPATCH, By::Service),
    ("ec2:DescribeSubnets", ONLY_DISPATCH, By::Service),
    ("ec2:DeleteNetworkInterface", ONLY_DISPATCH, By::Service),
    ("ec2:AssignPrivateIpAddresses", ONLY_DISPATCH, By::Service),
    ("ec2:UnassignPrivateIpAddresses", ONLY_DISPATCH, By::Service),
    // Lambda traces invocations.
    ("xray:PutTraceSegments", ALL, By::Service),
    ("xray:PutTelemetryRecords", ALL, By::Service),
    // SQS, S3 and the stores of secrets use keys for the data that the functions read and write.
    ("kms:Decrypt", ALL, By::Service),
    ("kms:GenerateDataKey", ALL, By::Service),
];

/// Operations that only the command line calls, and the storage methods that lead to each.
const OF_OPERATORS: [(&str, &[&str]); 1] = [("delete_objects", &["delete"])];

/// The methods that source code calls, and the texts in it.
#[derive(Default)]
struct Source {
    without_arguments: BTreeSet<String>,
    /// Methods called outside the modules of storage.
    called: BTreeSet<String>,
    all_called: BTreeSet<String>,
    texts: BTreeSet<String>,
    /// The methods that all functions of a name call, by this name.
    by_function: BTreeMap<String, BTreeSet<String>>,
    is_storage: bool,
    /// The function whose body is being read.
    function: String,
}

impl Source {
    /// Reads the source of these crates, without tests.
    fn read(folders: &[&str]) -> Self {
        let mut source = Self::default();
        for (_, files) in crates().iter().filter(|(name, _)| folders.contains(&name.as_str())) {
            for (file, text) in
                files.iter().filter(|(file, _)| !is_test_file(file) && !file.starts_with("tests/"))
            {
                source.is_storage = is_storage(file);
                source.add_file(text);
            }
        }
        source
    }

    fn add_file(&mut self, text: &str) {
        self.visit_file(&syn::parse_file(text).expect("a file of source is Rust"));
    }

    fn note_call(&mut self, name: String, has_arguments: bool) {
        if !has_arguments {
            self.without_arguments.insert(name.clone());
        }
        if !self.is_storage {
            self.called.insert(name.clone());
        }
        self.all_called.insert(name.clone());
        self.by_function.entry(self.function.clone()).or_default().insert(name);
    }

    /// Attributes the calls that `read` finds to the function with this name.
    fn within(&mut self, name: &syn::Ident, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name.to_string());
        read(self);
        self.function = outer;
    }

    /// Macro arguments and bodies are unparsed tokens, so a name between a dot and a parenthesis
    /// counts as a method call.
    fn read_tokens(&mut self, tokens: &str) {
        let outer = self.function.clone();
        for (at, _) in tokens.match_indices('(') {
            let (before, arguments) = (tokens[..at].trim_end(), tokens[at + 1..].trim_start());
            let is_in_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let before_name = before.trim_end_matches(is_in_name);
            let name = before[before_name.len()..].to_owned();
            let before_name = before_name.trim_end();
            if before_name.ends_with('.') {
                self.note_call(name, !arguments.starts_with(')'));
            } else if before_name.split_whitespace().next_back() == Some("fn") {
                self.function = name;
            }
        }
        self.function = outer;
    }

    /// Returns the methods that these functions call, directly or through others. Only names are
    /// compared: `get` of a map counts as `get` of storage, so the result may have too many
    /// methods.
    fn reached_from<T: AsRef<str>>(
        &self,
        functions: impl IntoIterator<Item = T>,
    ) -> BTreeSet<String> {
        let calls = |function: &str| self.by_function.get(function).cloned().unwrap_or_default();
        let mut reached = BTreeSet::new();
        let mut new: BTreeSet<String> =
            functions.into_iter().flat_map(|function| calls(function.as_ref())).collect();
        while let Some(name) = new.pop_first() {
            new.extend(calls(&name).difference(&reached).cloned());
            reached.insert(name);
        }
        reached
    }
}

/// Returns true for the files that read and write objects on behalf of others.
fn is_storage(file: &str) -> bool {
    file.starts_with("storage/")
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.within(&function.sig.ident, |visitor| visit::visit_item_fn(visitor, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.within(&function.sig.ident, |visitor| visit::visit_impl_item_fn(visitor, function));
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.within(&function.sig.ident, |visitor| visit::visit_trait_item_fn(visitor, function));
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.note_call(call.method.to_string(), !call.args.is_empty());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.read_tokens(&invoked.tokens.to_string());
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.texts.insert(text.value());
    }
}

/// Returns the operations of every AWS SDK that the adapters depend on.
fn operations() -> BTreeSet<String> {
    let metadata = metadata();
    let adapters = package(&metadata, "adapters");
    let sdks =
        adapters.dependencies.iter().filter(|dependency| dependency.name.starts_with("aws-sdk-"));
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

/// Returns the actions that a role of the template allows.
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

/// Collects all statements in a value, whatever their conditions.
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
    let known: BTreeSet<&str> =
        known.copied().chain(OF_OPERATORS.map(|(operation, _)| operation)).collect();
    let source = Source::read(&SOURCES);
    let called: BTreeSet<&str> =
        source.without_arguments.intersection(&operations).map(String::as_str).collect();
    assert_eq!(called, known, "calls in the code, and calls that PERMISSIONS knows");
    for (operation, methods) in OF_OPERATORS {
        let called: Vec<_> =
            methods.iter().filter(|method| source.called.contains(**method)).collect();
        assert!(called.is_empty(), "{called:?} need a permission for {operation}");
    }
}

#[test]
fn every_permission_is_used_by_the_function_that_has_it() {
    for (function, role) in [
        ("functions/deadletter", DEADLETTER),
        ("functions/ingress", INGRESS),
        ("functions/dispatch", DISPATCH),
    ] {
        let all = Source::read(&["crates/adapters", function]);
        let mut called = Source::read(&[function]).all_called;
        called.extend(match role {
            // AWS SDKs call the code that implements their traits for dispatch, so no method of
            // dispatch leads there. All calls therefore count as calls of dispatch, which has most
            // permissions.
            DISPATCH => all.all_called.clone(),
            _ => all.reached_from(&called),
        });
        for (action, _, by) in PERMISSIONS.iter().filter(|(_, roles, _)| roles.contains(&role)) {
            let is_used = match by {
                By::Operations(operations) => {
                    operations.iter().any(|operation| called.contains(*operation))
                }
                By::Parameter(name) => called.contains(*name),
                By::Extension(path) => all.texts.contains(*path),
                By::Service => true,
            };
            assert!(is_used, "nothing in {function} needs {action}: {by:?}");
        }
    }
}

#[test]
fn deadletter_and_ingress_reach_the_calls_that_their_roles_allow() {
    const BY_NAME_ONLY: [&str; 4] = ["get_object", "get_item", "query", "update_item"];
    let operations = operations();
    // Dispatch is not checked, because it has nearly all permissions. `get`, `entry`, `replace` and
    // `query` of other types count as those of storage and of the table. Tests of the running
    // functions check that the others reach neither (`tests/tests/emulated_aws/permissions.rs`).
    for (function, role) in [("functions/deadletter", DEADLETTER), ("functions/ingress", INGRESS)] {
        let all = Source::read(&["crates/adapters", function]);
        let reached = all.reached_from(&Source::read(&[function]).all_called);
        let allowed = PERMISSIONS.iter().filter(|(_, roles, _)| roles.contains(&role));
        let allowed: Vec<&[&str]> = allowed
            .filter_map(|(.., by)| match by {
                By::Operations(operations) => Some(*operations),
                By::Parameter(_) | By::Extension(_) | By::Service => None,
            })
            .collect();
        let reached: BTreeSet<&str> =
            reached.intersection(&operations).map(String::as_str).collect();
        let reached: BTreeSet<&str> =
            reached.into_iter().filter(|operation| !BY_NAME_ONLY.contains(operation)).collect();
        let all_allowed: BTreeSet<&str> = allowed.concat().into_iter().collect();
        assert!(reached.is_subset(&all_allowed), "{function}: {reached:?}");
        for operations in allowed {
            let is_reached = operations.iter().any(|operation| reached.contains(operation));
            assert!(is_reached, "{function} reaches none of {operations:?}");
        }
    }
}

#[test]
fn a_call_is_found_in_what_a_macro_is_given_and_in_what_it_is_made_of() {
    let source = |text: &str| {
        let mut source = Source::default();
        source.add_file(text);
        source
    };
    for text in [
        "async fn f() { tokio::select! { _ = client.receive_message().send() => {} } }",
        "async fn f() { join!(one(), async { client . receive_message ( ) . send().await }); }",
        "macro_rules! of { ($it:ident) => { async fn f(&self) { $it.receive_message().send().await } } }",
    ] {
        let found = source(text);
        assert!(found.without_arguments.contains("receive_message"), "{text}");
        assert!(found.reached_from(["f"]).contains("receive_message"), "{text}");
    }
    let of_our_own = source("fn f() { assert!(self.receive_message(1)); receive_message(); }");
    assert!(!of_our_own.without_arguments.contains("receive_message"));
}
