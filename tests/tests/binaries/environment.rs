//! The environment of a function, as `template.yaml` sets it. `!Ref` and `!Sub` resolve to
//! resources of the local AWS and to defaults of parameters.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;

use lastmile_tests::built::binary;
use serde_json::Value;

/// A function of the template, and its package, which also names its binary.
pub(crate) struct Function {
    resource: &'static str,
    package: &'static str,
}

pub(crate) const DISPATCH: Function =
    Function { resource: "DispatchFunction", package: "dispatch" };
pub(crate) const DEADLETTER: Function =
    Function { resource: "DeadLetterFunction", package: "deadletter" };
pub(crate) const INGRESS: Function = Function { resource: "IngressFunction", package: "ingress" };

impl Function {
    /// Returns the program and its arguments. The program is the binary of this build, or
    /// `PACKAGE/bootstrap` of the folder `LASTMILE_FUNCTIONS`, which cargo-lambda writes to
    /// `target/lambda`. The command `LASTMILE_EMULATOR` runs it if it is for another processor.
    pub(crate) fn command(&self) -> Vec<String> {
        let binary = match env::var("LASTMILE_FUNCTIONS") {
            Ok(folder) => format!("{folder}/{}/bootstrap", self.package),
            Err(_) => binary(self.package).to_string_lossy().into_owned(),
        };
        let emulator = env::var("LASTMILE_EMULATOR").unwrap_or_default();
        emulator.split_whitespace().map(ToOwned::to_owned).chain([binary]).collect()
    }
}

/// The queues that variables name, with their local names.
const QUEUES: [(&str, &str); 6] = [
    ("EventsQueue", "events"),
    ("RetryQueue", "retry"),
    ("SlowQueue", "slow"),
    ("IsolationQueue", "isolation"),
    ("DeadLetterQueue", "dead-letter"),
    ("LastResortQueue", "last-resort"),
];
const OTHERS: [(&str, &str); 12] = [
    ("ConfigBucket", "config"),
    ("ConfigBucket.Arn", "arn:aws:s3:::config"),
    ("Table", "lastmile"),
    ("Table.Arn", "arn:aws:dynamodb:us-east-1:000000000000:table/lastmile"),
    ("DeadLetterBucket", "dead-letters"),
    ("DeadLetterBucket.Arn", "arn:aws:s3:::dead-letters"),
    ("DeadLetterFunction.Arn", "arn:aws:lambda:us-east-1:000000000000:function:deadletter"),
    ("AWS::Partition", "aws"),
    ("AWS::Region", "us-east-1"),
    ("AWS::AccountId", local::aws::ACCOUNT),
    ("AWS::StackName", "tested"),
    (NO_VALUE, ""),
];
const NO_VALUE: &str = "AWS::NoValue";

/// Returns the variables that differ from the template's defaults because the services are local,
/// and those that Lambda sets.
fn local(endpoint: &str, runtime_api: &str) -> Vec<(String, String)> {
    let variables = [
        ("ALLOW_PRIVATE_DESTINATIONS", "127.0.0.1"),
        ("AWS_LAMBDA_RUNTIME_API", runtime_api),
        ("AWS_LAMBDA_FUNCTION_NAME", "tested"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/tested"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "tested"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "thing"),
        ("AWS_ENDPOINT_URL", endpoint),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Returns the variables of a function whose AWS is at this endpoint.
pub(crate) fn environment(
    function: &Function,
    endpoint: &str,
    runtime_api: &str,
) -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let text = fs::read_to_string(path).expect("there is a template");
    let template: Value = serde_saphyr::from_str(&text).expect("the template is YAML");
    let names = names(&template, endpoint);
    let mappings = &template["Mappings"];
    let variables = &template["Resources"][function.resource]["Properties"]["Environment"];
    let variables = variables["Variables"].as_object().expect("it has variables").iter();
    let variables =
        variables.map(|(name, value)| (name.clone(), resolved(value, &names, mappings)));
    variables.chain(local(endpoint, runtime_api)).collect()
}

/// Returns the values of the names that a variable may use.
fn names(template: &Value, endpoint: &str) -> BTreeMap<String, String> {
    let parameters = template["Parameters"].as_object().expect("it has parameters").iter();
    let default = |value: &Value| value.as_str().map_or(value.to_string(), ToOwned::to_owned);
    let parameters =
        parameters.map(|(name, parameter)| (name.clone(), default(&parameter["Default"])));
    let url = |local: &str| format!("{endpoint}/{}/{local}", local::aws::ACCOUNT);
    let queues = QUEUES.map(|(name, local)| (name.to_owned(), url(local)));
    let others = OTHERS.map(|(name, local)| (name.to_owned(), local.to_owned()));
    parameters.chain(queues).chain(others).collect()
}

fn resolved(value: &Value, names: &BTreeMap<String, String>, mappings: &Value) -> String {
    match value.as_array().map(Vec::as_slice) {
        // `!Sub` with variables of its own.
        Some([text @ Value::String(_), Value::Object(own)]) => {
            let own = own
                .iter()
                .map(|(name, variable)| (name.clone(), resolved(variable, names, mappings)));
            return resolved(text, &names.clone().into_iter().chain(own).collect(), mappings);
        }
        // `!FindInMap`.
        Some([Value::String(map), Value::String(row), Value::String(column)])
            if mappings.get(map).is_some() =>
        {
            let found = &mappings[map][&names[row]][column];
            return found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned);
        }
        // `!Join` of a list.
        Some([Value::String(separator), Value::Array(parts)]) => {
            let parts = parts.iter().map(|part| resolved(part, names, mappings));
            return parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator);
        }
        // `!Select`: a part of the stack's id.
        Some([Value::Number(_), _]) => return "tested".to_owned(),
        // `!If`: the condition requires a parameter, and none is set.
        Some([_, _, otherwise]) => return resolved(otherwise, names, mappings),
        _ => {}
    }
    // `!Join` of a parameter.
    let value = value.as_array().and_then(|parts| parts.last()).unwrap_or(value);
    let text = value.as_str().unwrap_or_else(|| panic!("a variable is a text: {value}"));
    if let Some(named) = names.get(text) {
        return named.clone();
    }
    let replaced = names
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
    assert!(!replaced.contains("${"), "{replaced} names something unknown");
    replaced
}
