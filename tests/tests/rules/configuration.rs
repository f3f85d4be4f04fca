//! `docs/reference/fields.md` and `docs/reference/template.md` against what is read: documented defaults are the real
//! ones, and each variable of the template is documented. `scripts/generate` writes the tables of the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::waits::Moments;
use dialects::Source;
use lastmile_tests::document;
use serde_json::{Value, json};

/// A file of the repository.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of a table of the page of fields, each as its cells.
fn rows(table: &str) -> Vec<Vec<String>> {
    document::rows("reference/fields.md", table)
}

/// The texts of a cell between backquotes.
fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
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
    let reading = dialects::read(&[Source { name: "a.json", text: &subscription.to_string() }]);
    assert!(reading.findings.is_empty(), "{subscription:#} {:#?}", reading.findings);
    let found = reading.catalogue.subscriptions().next().expect("one subscription");
    Arc::clone(found)
}

#[test]
fn the_documented_defaults_are_the_real_ones() {
    let plain = json!({"destination": {"url": "https://billing.example.com/"}});
    let (mut all, mut tried) = (plain.clone(), 0);
    for row in rows("native-subscription") {
        let (Some(field), Some(default)) = (code(&row[0]), code(&row[2])) else { continue };
        // Invalid alone: nothing is batched by default, nothing is disabled, and nobody says who is calling. A schedule that is
        // written replaces the default one as a whole.
        let is_alone = field == "spec.destination.disable.then"
            || field.contains("[]")
            || ["spec.retry.schedule.", "spec.destination.auth.", "spec.filter.", "spec.batch."]
                .iter()
                .any(|prefix| field.starts_with(prefix));
        if is_alone {
            continue;
        }
        let path = field.strip_prefix("spec.").expect("only the spec has defaults");
        put(&mut all, path, &serde_saphyr::from_str(default).expect("a value"));
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
        let waits =
            [&described, &plain.retry.schedule].map(|schedule| schedule.wait_ms(retry, moments));
        assert_eq!(waits[0], waits[1], "before retry {retry}");
    }
}

#[test]
fn every_variable_that_the_template_sets_is_documented() {
    let page = file("docs/reference/template.md");
    let template: Value = serde_saphyr::from_str(&file("template.yaml")).expect("it is YAML");
    let resources = template["Resources"].as_object().expect("the template has resources");
    let functions = resources.values().map(|resource| &resource["Properties"]);
    let functions = functions.chain([&template["Globals"]["Function"]]);
    let set = functions.filter_map(|function| function["Environment"]["Variables"].as_object());
    let names: BTreeSet<&String> = set.flat_map(|variables| variables.keys()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_table_of_equivalents_names_existing_fields() {
    let fields = rows("native-subscription");
    let fields: BTreeSet<&str> = fields.iter().filter_map(|row| code(&row[0])).collect();
    let named = rows("equivalents");
    assert!(named.len() > 10, "{named:?}");
    for row in named {
        let name = code(&row[0]).expect("a field");
        assert!(fields.contains(format!("spec.{name}").as_str()), "{name}");
    }
}

#[test]
fn the_functions_optimise_every_package_that_the_command_line_does_not() {
    const PACKAGE: &str = "[profile.release.package.";
    let read = |path: &str| {
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let named = text.lines().filter(|line| line.starts_with(PACKAGE));
        named.map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let (command_line, functions) = (read("Cargo.toml"), read("functions/.cargo/config.toml"));
    assert!(!command_line.is_empty());
    let missing: Vec<_> = command_line.iter().filter(|line| !functions.contains(line)).collect();
    assert!(missing.is_empty(), "functions/.cargo/config.toml has to override {missing:?}");
}
