//! The tables of `docs/reference/fields.md` and `docs/reference/template.md`: the fields of the
//! native format, and the variables of the functions, the parameters and outputs of the templates.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;

use adapters::metrics::NAMESPACE;
use adapters::settings::{DeadLetterSettings, DispatchSettings, IngressSettings};

use crate::{file, root, schema, template, with_table};

const SETTINGS: &str = include_str!("../../../adapters/src/settings.rs");

/// The variables without which the functions do not start.
const NEEDED: [(&str, &str); 12] = [
    ("TABLE_NAME", "lastmile"),
    ("SUBSCRIPTIONS_URI", "s3://config/subscriptions/"),
    ("EVENTS_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/events"),
    ("RETRY_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/retry"),
    ("SLOW_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/slow"),
    ("ISOLATION_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/isolation"),
    ("DEAD_LETTER_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/dead"),
    ("LAST_RESORT_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/last"),
    ("DEAD_LETTER_CONTAINER", "letters"),
    ("INGRESS_AUTHORIZATION", "keys"),
    ("PUBLISHER_KEYS", "ssm:key"),
    ("OWN_RESOURCE_ARNS", "arn:aws:sqs:eu-west-1:123456789012:own-*"),
];

/// The default of a variable: the value that changes nothing.
const DEFAULTS: [(&str, &str); 5] = [
    ("MAX_CONCURRENCY", "1"),
    ("LOG_DELIVERIES", "all"),
    ("METRICS_NAMESPACE", NAMESPACE),
    ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001"),
    ("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "2773"),
];

/// The page of fields with every table written anew.
pub(crate) fn fields_page(current: &str) -> String {
    let mut page = current.to_owned();
    for (kind, fields) in schema::documents() {
        let rows: Vec<String> = fields.iter().map(schema::Field::row).collect();
        let name = format!("native-{}", kind.to_lowercase());
        page = with_table(&page, &name, "| field | may be | default | meaning |", &rows);
    }
    page
}

/// The page of the template with every table written anew.
pub(crate) fn template_page(current: &str) -> String {
    let head = "| variable | of | default | meaning |";
    let mut page = with_table(current, "environment", head, &variable_rows());
    let template = file("template.yaml");
    let parameters = template::section(&template, "Parameters");
    let rows: Vec<String> = parameters.iter().map(template::Entry::parameter_row).collect();
    page = with_table(&page, "parameters", "| parameter | may be | default | meaning |", &rows);
    let outputs = template::section(&template, "Outputs");
    let rows: Vec<String> = outputs.iter().map(template::Entry::output_row).collect();
    page = with_table(&page, "outputs", "| output | what it is |", &rows);
    let head = "| template | parameter | may be | default | meaning |";
    with_table(&page, "infra-parameters", head, &infra_rows())
}

/// The parameters of the templates beside the application's: `infra/*.yaml`, by name.
fn infra_rows() -> Vec<String> {
    let entries = fs::read_dir(root().join("infra")).expect("there is infra");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let names =
        names.map(|name| name.expect("a plain name")).filter(|name| name.ends_with(".yaml"));
    let rows_of = |name: String| {
        let path = format!("infra/{name}");
        let row = |parameter: &template::Entry| {
            format!("| [{path}](../../{path}) {}", parameter.parameter_row())
        };
        template::section(&file(&path), "Parameters").iter().map(row).collect::<Vec<_>>()
    };
    names.collect::<BTreeSet<String>>().into_iter().flat_map(rows_of).collect()
}

/// The variables that the functions read, dispatch first.
fn looked_at() -> [BTreeSet<String>; 3] {
    let names = [const { RefCell::new(BTreeSet::new()) }; 3];
    let lookup = |index: usize| {
        let names = &names[index];
        move |name: &str| {
            names.borrow_mut().insert(name.to_owned());
            needed(name)
        }
    };
    DispatchSettings::read(lookup(0)).expect("all required variables are set");
    DeadLetterSettings::read(lookup(1)).expect("all required variables are set");
    IngressSettings::read(lookup(2)).expect("all required variables are set");
    names.map(RefCell::into_inner)
}

fn needed(name: &str) -> Option<String> {
    NEEDED.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
}

/// The default of a variable.
fn default_of(name: &str) -> String {
    let read = |value: Option<&str>| {
        let lookup = |variable: &str| {
            if variable == name { value.map(ToOwned::to_owned) } else { needed(variable) }
        };
        let ingress = IngressSettings::read(lookup);
        (DispatchSettings::read(lookup), DeadLetterSettings::read(lookup), ingress)
    };
    let unset = read(None);
    if unset.0.is_err() || unset.1.is_err() || unset.2.is_err() {
        return "required".to_owned();
    }
    let known = DEFAULTS.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value);
    if let Some(value) = known {
        assert_eq!(read(Some(value)), unset, "{value} is not the default of {name}");
    }
    known.map_or("none".to_owned(), |value| format!("`{value}`"))
}

/// The names of variables, with their descriptions: `/// …` before `pub const NAME: &str =
/// "NAME";`.
fn variables() -> Vec<(String, String)> {
    let (mut found, mut sentences) = (Vec::new(), Vec::new());
    for line in SETTINGS.lines() {
        if let Some(sentence) = line.strip_prefix("/// ") {
            sentences.push(sentence.trim_matches(['<', '>']));
        } else {
            let name =
                line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": &str = \""));
            found.extend(name.map(|(name, _)| (name.to_owned(), sentences.join(" "))));
            sentences.clear();
        }
    }
    found
}

fn variable_rows() -> Vec<String> {
    let [dispatch, deadletter, ingress] = looked_at();
    let variables = variables();
    let named: BTreeSet<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
    for name in dispatch.iter().chain(&deadletter).chain(&ingress) {
        assert!(named.contains(name.as_str()), "{name} is read but is no constant of the settings");
    }
    let row = |(name, meaning): &(String, String)| {
        let functions =
            [("dispatch", &dispatch), ("deadletter", &deadletter), ("ingress", &ingress)];
        let functions = functions
            .iter()
            .filter(|(_, looked)| looked.contains(name))
            .map(|(function, _)| *function);
        let functions = functions.collect::<Vec<_>>().join(", ");
        format!("| `{name}` | {functions} | {} | {meaning} |", default_of(name))
    };
    variables.iter().map(row).collect()
}
