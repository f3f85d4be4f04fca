//! `docs/configuration.md` against what is read: the schema of the native format, the functions'
//! environment, the templates. A field that is missing or wrong in the documentation is found here;
//! `UPDATE_GOLDEN=1` writes the tables.

mod schema;
pub(crate) mod template;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::metrics::NAMESPACE;
use adapters::settings::{DeadLetterSettings, DispatchSettings, IngressSettings};
use delivery::manifest;
use delivery::manifest::Source;
use delivery::subscription::Subscription;
use delivery::subscription::schedule::Moments;
use lastmile_tests::document::assert_table;
use serde_json::{Value, json};

const PAGE: &str = "configuration.md";
const SETTINGS: &str = include_str!("../../../../crates/adapters/src/settings.rs");

/// The variables without which the functions do not start.
const NEEDED: [(&str, &str); 12] = [
    ("SUBSCRIPTIONS_URI", "s3://config/subscriptions.yaml"),
    ("EVENTS_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/events"),
    ("FAN_OUT_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/fan-out"),
    ("RETRY_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/retry"),
    ("SLOW_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/slow"),
    ("ISOLATION_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/isolation"),
    ("DEAD_LETTER_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/dead"),
    ("UNPROCESSED_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/unprocessed"),
    ("LAST_RESORT_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/1/last"),
    ("DEAD_LETTER_CONTAINER", "letters"),
    ("INGRESS_AUTHORIZATION", "keys"),
    ("PUBLISHER_KEYS", "ssm:key"),
];

/// What a variable may default to: the value that changes nothing is its default.
const DEFAULTS: [(&str, &str); 5] = [
    ("MAX_CONCURRENCY", "1"),
    ("LOG_DELIVERIES", "all"),
    ("METRICS_NAMESPACE", NAMESPACE),
    ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001"),
    ("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "2773"),
];

#[test]
fn every_field_of_the_native_format_is_documented_as_in_the_schema() {
    for (kind, fields) in schema::documents() {
        let rows: Vec<String> = fields.iter().map(schema::Field::row).collect();
        assert_table(
            PAGE,
            &format!("native-{}", kind.to_lowercase()),
            "| field | may be | default | meaning |",
            &rows,
        );
    }
}

/// Puts a value at a dotted path.
fn put(document: &mut Value, path: &str, value: &Value) {
    let member = path.split('.').fold(document, |member, name| &mut member[name]);
    *member = value.clone();
}

/// The Subscription with this spec, as it is read.
fn subscribed(spec: &Value) -> Arc<Subscription> {
    let metadata = json!({"namespace": "shop", "topic": "orders", "name": "billing"});
    let subscription = json!({"apiVersion": "lastmile.dev/v1", "kind": "Subscription", "metadata": metadata, "spec": spec});
    let reading = manifest::read(&[Source { name: "a.json", text: &subscription.to_string() }]);
    assert!(reading.findings.is_empty(), "{subscription:#} {:#?}", reading.findings);
    let found = reading.catalogue.subscriptions().next().expect("one subscription");
    Arc::clone(found)
}

#[test]
fn the_documented_defaults_are_the_real_ones() {
    let plain = json!({"destination": {"url": "https://billing.example.com/"}});
    let documents = schema::documents();
    let (_, fields) =
        documents.iter().find(|(kind, _)| kind == "Subscription").expect("there are subscriptions");
    let (mut all, mut tried) = (plain.clone(), 0);
    for field in fields {
        // Invalid alone: nothing is batched by default, nothing is disabled, and nobody says who is calling. A schedule that is
        // written replaces the default one as a whole.
        let is_alone = ["spec.batch.onRefused", "spec.destination.disable.then"]
            .contains(&&*field.path)
            || ["spec.retry.schedule.", "spec.destination.auth."]
                .iter()
                .any(|of| field.path.starts_with(of));
        let Some(default) = field.default.as_ref().filter(|_| !is_alone) else { continue };
        let path = field.path.strip_prefix("spec.").expect("only the spec has defaults");
        put(&mut all, path, default);
        tried += 1;
    }
    assert!(tried > 15, "{all:#}");
    assert_eq!(subscribed(&all), subscribed(&plain));
}

#[test]
fn the_default_schedule_is_the_one_that_is_described() {
    let with = |schedule: Value| {
        let spec = json!({
            "destination": {"url": "https://billing.example.com/"},
            "retry": {"maxAttempts": 20, "schedule": schedule},
        });
        subscribed(&spec).retry.schedule.clone()
    };
    let described = with(json!({"kind": "exponential", "delay": "PT2.5S", "max": "PT2H"}));
    let plain = subscribed(&json!({"destination": {"url": "https://billing.example.com/"}}));
    let moments = Moments { first_attempt_ms: 0, outcome_ms: 0 };
    for retry in 1..plain.retry.max_attempts {
        let waits = [&described, &plain.retry.schedule].map(|of| of.wait_ms(retry, moments));
        assert_eq!(waits[0], waits[1], "before retry {retry}");
    }
}

/// The variables that the functions read, dispatch first.
fn looked_at() -> [BTreeSet<String>; 3] {
    let names = [const { RefCell::new(BTreeSet::new()) }; 3];
    let lookup = |of: usize| {
        let names = &names[of];
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
    NEEDED.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
}

/// The default of a variable.
fn default_of(name: &str) -> String {
    let read = |value: Option<&str>| {
        let lookup = |of: &str| if of == name { value.map(ToOwned::to_owned) } else { needed(of) };
        let ingress = IngressSettings::read(lookup);
        (DispatchSettings::read(lookup), DeadLetterSettings::read(lookup), ingress)
    };
    let unset = read(None);
    if unset.0.is_err() || unset.1.is_err() || unset.2.is_err() {
        return "required".to_owned();
    }
    let known = DEFAULTS.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
    if let Some(value) = known {
        assert_eq!(read(Some(value)), unset, "{value} is not the default of {name}");
    }
    let found =
        known.or_else(|| ["false", "true"].into_iter().find(|value| read(Some(value)) == unset));
    found.map_or("none".to_owned(), |value| format!("`{value}`"))
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

#[test]
fn every_variable_of_the_functions_is_documented() {
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
    let rows: Vec<String> = variables.iter().map(row).collect();
    assert_table(PAGE, "environment", "| variable | of | default | meaning |", &rows);
    let page = template::file("docs/configuration.md");
    for name in template::environment(&template::file("template.yaml")) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is set by the template but not on the page"
        );
    }
}

#[test]
fn every_parameter_and_output_of_the_template_is_documented() {
    let text = template::file("template.yaml");
    let parameters = template::section(&text, "Parameters");
    assert!(parameters.len() > 15);
    let rows: Vec<String> = parameters.iter().map(template::Entry::parameter_row).collect();
    assert_table(PAGE, "parameters", "| parameter | may be | default | meaning |", &rows);
    let outputs = template::section(&text, "Outputs");
    assert!(outputs.len() > 5);
    let row = |entry: &template::Entry| {
        format!("| `{}` | {} |", entry.name, entry.get("Description").unwrap_or("–"))
    };
    let rows: Vec<String> = outputs.iter().map(row).collect();
    assert_table(PAGE, "outputs", "| output | what it is |", &rows);
}

#[test]
fn every_parameter_of_the_other_templates_is_documented() {
    let mut rows = Vec::new();
    for path in template::surrounding() {
        let parameters = template::section(&template::file(&path), "Parameters");
        rows.extend(
            parameters
                .iter()
                .map(|entry| format!("| [{path}](../{path}) {}", entry.parameter_row())),
        );
    }
    assert_table(
        PAGE,
        "infra-parameters",
        "| template | parameter | may be | default | meaning |",
        &rows,
    );
}

/// The first cells of a table of the page.
fn first_cells(table: &str) -> Vec<String> {
    let page = template::file("docs/configuration.md");
    let (_, rest) =
        page.split_once(&format!("<!-- {table} -->\n")).expect("the page has that table");
    let (rows, _) = rest.split_once(&format!("<!-- /{table} -->")).expect("it ends");
    let cells = rows
        .lines()
        .skip(2)
        .map(|row| row.split('|').nth(1).expect("a cell").trim().trim_matches('`').to_owned());
    cells.collect()
}

#[test]
fn the_table_of_equivalents_names_existing_fields() {
    let fields: BTreeSet<String> = schema::documents()
        .into_iter()
        .flat_map(|(_, fields)| fields)
        .map(|field| field.path)
        .collect();
    let named = first_cells("equivalents");
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(
            fields.contains(&format!("spec.{name}")),
            "{name} is no field of the native format"
        );
    }
}
