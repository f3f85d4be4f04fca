//! Templates as people write them: which resources are read, and what the others are told.

use super::{loaded, read_files, shown};
use crate::tests::support::names;
use crate::{Source, read};

macro_rules! fixture {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../fixtures/templates/", $name)))
    };
}

/// A file, its subscriptions, and its findings.
type Row = ((&'static str, &'static str), &'static [&'static str], &'static [&'static str]);

const TOPIC_ID: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.EventGrid/topics/orders";

const ROWS: &[Row] = &[
    (
        fixture!("literal.json"),
        &["markets/prices/stock", "shop/orders/billing"],
        &["17:5: warning: resources[1]: \"Microsoft.EventGrid/domains\" is ignored; only event \
           subscriptions are read"],
    ),
    (
        fixture!("unneeded.json"),
        &["shop/orders/billing"],
        &[
            "7:20: warning: resources[0].condition: template expressions are not evaluated: the \
             condition is assumed to be true; remove the resource if it is not deployed",
            "18:11: note: resources[0].properties.deliveryWithResourceIdentity.identity: identity \
             has no effect",
            "23:15: note: \
             resources[0].properties.deliveryWithResourceIdentity.destination.properties.minimumTlsVersionAllowed: \
             minimumTlsVersionAllowed has no effect",
        ],
    ),
    (
        fixture!("named.json"),
        &["shop/orders/billing"],
        &[
            "19:15: error: resources[1].name: template expressions are not evaluated; write the value, or check the output of: \
             az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.eventgrid/topics/NAME -o json",
            "28:15: error: resources[2].name: template expressions are not evaluated; write the value, or check the output of: \
             az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.eventgrid/topics/NAME -o json",
        ],
    ),
    (
        fixture!("endpoint.json"),
        &[],
        &[
            "12:84: error: resources[0].properties.destination.properties.endpointUrl: template expressions are not evaluated; \
             write the value, or check the output of: az eventgrid event-subscription show --name billing --source-resource-id \
             /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.EventGrid/topics/orders \
             --include-full-endpoint-url true -o json",
        ],
    ),
    (
        fixture!("parameters.json"),
        &[],
        &[
            "9:5: warning: resources[0]: \"Microsoft.EventGrid/topics\" is ignored; only event \
             subscriptions are read",
            "18:15: error: resources[1].name: template expressions are not evaluated; write the value, or check the output of: \
             az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.eventgrid/topics/NAME -o json",
        ],
    ),
    (
        fixture!("variables.json"),
        &[],
        &[
            "14:15: error: resources[0].name: template expressions are not evaluated; write the value, or check the output of: \
             az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.storage/storageaccounts/NAME -o json",
        ],
    ),
    (
        fixture!("system-topic.json"),
        &[],
        &[
            "11:89: error: resources[0].properties.destination.properties.resourceId: template expressions are not evaluated; \
             write the value, or check the output of: az eventgrid system-topic event-subscription show --name resize \
             --resource-group GROUP --system-topic-name uploads --include-full-endpoint-url true -o json",
        ],
    ),
    (
        fixture!("copy.json"),
        &[],
        &[
            "9:15: error: resources[0].copy: copy loops are not evaluated; write each copy, or check the \
             output of: az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.eventgrid/topics/NAME -o json",
            "26:11: error: resources[1].properties.filter.copy: copy loops are not evaluated; write each \
             copy, or check the output of: az eventgrid event-subscription show --name filtered --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/shop/providers/microsoft.eventgrid/topics/orders \
             --include-full-endpoint-url true -o json",
        ],
    ),
    (
        fixture!("nested.json"),
        &["shop/orders/stock"],
        &[
            "23:24: error: resources[0].properties.template.resources[0].scope: template expressions are not evaluated; write \
             the value, or check the output of: az eventgrid event-subscription show --name billing --source-resource-id \
             SOURCE_ID --include-full-endpoint-url true -o json",
        ],
    ),
    (
        fixture!("bicep.json"),
        &[],
        &[
            "11:14: warning: resources.topic: \"Microsoft.EventGrid/topics\" is ignored; only \
             event subscriptions are read",
            "20:16: error: resources.billing.scope: template expressions are not evaluated; write the value, or check the \
             output of: az eventgrid event-subscription show --name billing --source-resource-id SOURCE_ID \
             --include-full-endpoint-url true -o json",
            "30:15: error: resources.stock.name: template expressions are not evaluated; write the value, or check the output \
             of: az eventgrid event-subscription list --source-resource-id \
             /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/microsoft.eventgrid/topics/NAME -o json",
        ],
    ),
    (
        fixture!("namespace.json"),
        &[],
        &[
            "6:5: warning: resources[0]: \"Microsoft.EventGrid/namespaces\" is ignored; only event \
             subscriptions are read",
            "9:15: error: resources[0].name: template expressions are not evaluated; write the value, or check the output of: \
             az eventgrid namespace topic event-subscription show --name billing --resource-group GROUP --namespace-name NAME \
             --topic-name NAME -o json",
            "11:9: warning: resources[0].resources[0]: \"topics\" is ignored; only event \
             subscriptions are read",
            "42:88: error: resources[1].properties.deliveryConfiguration.push.destination.properties.endpointUrl: template \
             expressions are not evaluated; write the value, or check the output of: az eventgrid namespace topic \
             event-subscription show --name stock --resource-group GROUP --namespace-name shop --topic-name orders -o json",
        ],
    ),
];

#[test]
fn a_resource_of_a_template_is_read_if_what_it_needs_is_literal() {
    for &((name, text), subscriptions, findings) in ROWS {
        let reading = read(&[Source { name, text }]);
        let found: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
        let found: Vec<&str> = found.iter().map(|finding| &finding[name.len() + 1..]).collect();
        assert_eq!(found, findings, "{name}");
        assert_eq!(names(&reading), subscriptions, "{name}");
    }
}

/// A resource of a template, with a field among its properties and one around them.
fn template(property: &str, around: &str) -> String {
    format!(
        "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\nresources:\n\
         - {{type: Microsoft.EventGrid/eventSubscriptions, name: n, scope: {TOPIC_ID}, {around}properties: {{{property}\
         destination: {{endpointType: WebHook, properties: {{endpointUrl: 'http://h/'}}}}}}}}\n"
    )
}

#[test]
fn an_expression_in_a_field_that_is_needed_is_one_error() {
    for (property, around, field) in [
        ("filter: \"[f()]\", ", "", "filter"),
        ("filter: {includedEventTypes: \"[f()]\"}, ", "", "filter.includedEventTypes"),
        ("filter: {includedEventTypes: ['[f()]', '[g()]']}, ", "", "filter.includedEventTypes[0]"),
        (
            "filter: {advancedFilters: [{key: subject, operatorType: StringIn, values: ['[f()]']}]}, ",
            "",
            "filter.advancedFilters[0].values[0]",
        ),
        ("filtersConfiguration: {filters: \"[f()]\"}, ", "", "filtersConfiguration.filters"),
        ("retryPolicy: {maxDeliveryAttempts: \"[f()]\"}, ", "", "retryPolicy.maxDeliveryAttempts"),
        ("eventDeliverySchema: \"[f()]\", ", "", "eventDeliverySchema"),
        ("expirationTimeUtc: \"[f()]\", ", "", "expirationTimeUtc"),
        ("deadLetterDestination: \"[f()]\", ", "", "deadLetterDestination"),
        (
            "deadLetterWithResourceIdentity: {identity: {type: '[f()]'}, deadLetterDestination: {endpointType: StorageBlob, \
             properties: {resourceId: '[g()]', blobContainerName: c}}}, ",
            "",
            "deadLetterWithResourceIdentity.deadLetterDestination.properties.resourceId",
        ),
        ("copy: [{name: filter, count: 1, input: {}}], ", "", "copy"),
        ("", "lastmile: {retryOn: \"[f()]\"}, ", "lastmile.retryOn"),
    ] {
        let found = shown(&read_files(&[&template(property, around)]));
        let properties = if property.is_empty() { "" } else { "properties." };
        let expected = format!("error: resources[0].{properties}{field}: ");
        assert!(found.len() == 1 && found[0].contains(&expected), "{property}{around}: {found:#?}");
        assert!(found[0].contains("az eventgrid event-subscription show --name n"), "{found:?}");
    }
}

#[test]
fn an_expression_in_a_field_without_an_effect_changes_nothing() {
    for (property, around) in [
        ("", "location: '[l()]', tags: '[t()]', apiVersion: '[v()]', dependsOn: ['[d()]'], "),
        (
            "",
            "metadata: {a: '[m()]'}, comments: '[c()]', resourceGroup: '[g()]', systemData: '[s()]', ",
        ),
        ("labels: '[l()]', provisioningState: '[p()]', topic: '[t()]', ", ""),
        ("deadLetterWithResourceIdentity: {identity: '[i()]'}, ", ""),
        ("filter: null, retryPolicy: {}, ", "copy: null, "),
    ] {
        let (subscription, found) = loaded(&[&template(property, around)]);
        assert_eq!(subscription.name.to_string(), "shop/orders/n");
        assert!(
            found.iter().all(|finding| finding.contains(": note: ")),
            "{property}{around}: {found:?}"
        );
    }
}

#[test]
fn brackets_are_an_expression_in_templates_and_resources_without_an_id_only() {
    let takes = |text: &str, subject: &str| {
        let (subscription, _) = loaded(&[text]);
        super::takes(
            &subscription,
            &format!(
                r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","subject":"{subject}"}}"#
            ),
        )
    };
    let begins = |with: &str| format!("filter: {{subjectBeginsWith: \"{with}\"}}, ");
    let exported = super::webhook(", filter: {subjectBeginsWith: \"[a]\"}", "");
    assert!(takes(&exported, "[a]b") && !takes(&exported, "a"));
    let doubled = super::webhook(", filter: {subjectBeginsWith: \"[[a]\"}", "");
    assert!(takes(&doubled, "[[a]b") && !takes(&doubled, "[a]b"));
    let escaped = template(&begins("[[a]"), "");
    assert!(takes(&escaped, "[a]b") && !takes(&escaped, "[[a]b"));
    let open = template(&begins("[[a"), "");
    assert!(takes(&open, "[[ab") && !takes(&open, "[ab"));
    let alone = super::push(", maxDeliveryCount: '[f()]'");
    let found = shown(&read_files(&[&alone]));
    assert!(
        found.len() == 1
            && found[0].contains("maxDeliveryCount: template expressions are not evaluated"),
        "{found:?}"
    );
    let named = super::webhook("", "").replace(super::ID, "'[i()]'");
    let found = shown(&read_files(&[&named]));
    assert!(
        found.len() == 1 && found[0].contains("error: id: template expressions are not evaluated"),
        "{found:?}"
    );
}

#[test]
fn a_resource_that_a_template_does_not_make_is_not_read() {
    for (around, expected) in [
        ("existing: true, ", "existing: ignored: the resource already exists"),
        ("condition: false, ", "condition: ignored: its condition is false"),
    ] {
        let reading = read_files(&[&template("", around)]);
        let found = shown(&reading);
        assert!(found.len() == 1 && found[0].contains(expected), "{around}: {found:?}");
        assert_eq!(names(&reading), [""; 0]);
    }
    for around in ["existing: false, ", "condition: true, "] {
        assert_eq!(loaded(&[&template("", around)]).1, Vec::<String>::new(), "{around}");
    }
}

#[test]
fn a_nested_deployment_that_is_not_made_or_not_there_is_a_warning() {
    let deployment = |around: &str, properties: &str| {
        let text = format!(
            "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\nresources:\n\
             - {{type: Microsoft.Resources/deployments, name: m, {around}properties: {{{properties}}}}}\n"
        );
        let reading = read_files(&[&text]);
        assert_eq!(names(&reading), [""; 0]);
        shown(&reading).concat()
    };
    let inner =
        "template: {resources: [{type: Microsoft.EventGrid/eventSubscriptions, name: \"[n()]\"}]}";
    assert!(
        deployment("condition: false, ", inner)
            .ends_with("warning: resources[0].condition: ignored: its condition is false")
    );
    assert!(
        deployment("", "templateLink: {uri: 'http://h/'}")
            .contains("warning: resources[0]: the linked template of this deployment is not read")
    );
    assert!(deployment("", "template: {resources: \"[variables('all')]\"}").contains(
        "resources[0].properties.template.resources: expected a list, found an expression"
    ));
}
