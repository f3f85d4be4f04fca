use std::sync::Arc;

use delivery::subscription::Subscription;
use serde_json::{Value as Json, json};

use super::super::{Reading, Source, read};

mod joined;
mod patterns;
mod requests;
mod templates;

const RULE_ARN: &str = "arn:aws:events:eu-west-1:123456789012:rule/orders";
const DESTINATION_ARN: &str = "arn:aws:events:eu-west-1:123456789012:api-destination/crm/1";
const CONNECTION_ARN: &str = "arn:aws:events:eu-west-1:123456789012:connection/crm/1";

fn rule(pattern: &Json) -> Json {
    json!({ "Name": "orders", "Arn": RULE_ARN, "State": "ENABLED", "EventPattern": pattern.to_string() })
}

/// The targets of a rule: one with these fields.
fn targets(fields: &Json) -> Json {
    json!({ "Targets": [with(&json!({ "Id": "t", "Arn": DESTINATION_ARN }), fields)] })
}

fn destination(fields: &Json) -> Json {
    let base = json!({ "ApiDestinationArn": DESTINATION_ARN, "Name": "crm", "ConnectionArn": CONNECTION_ARN,
        "InvocationEndpoint": "https://crm.example.com/in", "HttpMethod": "POST" });
    with(&base, fields)
}

fn connection(parameters: &Json) -> Json {
    let auth = json!({ "ApiKeyAuthParameters": { "ApiKeyName": "x-key" } });
    json!({ "ConnectionArn": CONNECTION_ARN, "Name": "crm", "AuthorizationType": "API_KEY",
        "AuthParameters": with(&auth, parameters) })
}

fn with(base: &Json, fields: &Json) -> Json {
    let mut all = base.as_object().expect("an object").clone();
    all.extend(fields.as_object().expect("an object").clone());
    Json::Object(all)
}

/// The files of a rule with one target, whose pattern is that of all orders.
fn files(target: &Json, of_destination: &Json, parameters: &Json) -> [Json; 4] {
    let pattern = json!({ "source": ["com.example.shop"] });
    [rule(&pattern), targets(target), destination(of_destination), connection(parameters)]
}

/// Reads these documents, each in a file of its own: `1.json` and so on.
fn reading(documents: &[Json]) -> Reading {
    let numbered = documents.iter().enumerate();
    let files: Vec<(String, String)> = numbered
        .map(|(index, document)| (format!("{}.json", index + 1), document.to_string()))
        .collect();
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    read(&sources)
}

/// The findings without lines and columns, and without the secret that every connection here lacks.
fn findings(reading: &Reading) -> Vec<String> {
    let shown = reading.findings.iter().map(|finding| {
        let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{}: {}: {}{help}", finding.file, finding.severity.as_str(), finding.problem())
    });
    shown.filter(|finding| !finding.contains("env:CRM_API_KEY")).collect()
}

/// The one subscription of these documents, which have no other findings than these.
fn loaded(documents: &[Json], expected: &[&str]) -> Arc<Subscription> {
    let reading = reading(documents);
    assert_eq!(findings(&reading), expected);
    let mut subscriptions = reading.catalogue.subscriptions();
    let subscription = Arc::clone(subscriptions.next().expect("a subscription"));
    assert!(subscriptions.next().is_none());
    subscription
}

/// The only finding of these documents, which give no subscription.
fn refused(documents: &[Json]) -> String {
    let reading = reading(documents);
    assert_eq!(reading.catalogue.subscriptions().count(), 0);
    let found = findings(&reading);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.concat()
}
