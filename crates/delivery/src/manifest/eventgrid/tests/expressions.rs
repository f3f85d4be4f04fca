//! Templates with expressions: what is evaluated, and what stays open.

use super::{Reading, loaded, read_files, shown};
use crate::manifest::ReferenceUse;

/// A template with these parameters and variables, and one resource.
fn template(parameters: &str, variables: &str, resource: &str) -> String {
    format!(
        "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\n\
         contentVersion: 1.0.0.0\nparameters: {{{parameters}}}\nvariables: {{{variables}}}\nresources:\n- {resource}\n"
    )
}

/// A subscription of a custom topic in the resource group `g` with this URL.
fn to(url: &str) -> String {
    format!(
        "{{type: Microsoft.EventGrid/topics/eventSubscriptions, name: t/s, resourceGroup: g, \
         properties: {{destination: {{endpointType: WebHook, properties: {{endpointUrl: \"{url}\"}}}}}}}}"
    )
}

/// What is said of parameters whose defaults were used.
const DEFAULTS: &str =
    "these parameters have the default values of the template, and a deployment may have others";

fn url_of(parameters: &str, variables: &str, url: &str) -> String {
    let (subscription, findings) = loaded(&[&template(parameters, variables, &to(url))]);
    assert!(findings.iter().all(|finding| finding.contains(DEFAULTS)), "{url}: {findings:?}");
    subscription.destination.url.to_string()
}

#[test]
fn what_a_template_says_is_evaluated() {
    let parameters = "host: {type: string, defaultValue: h.example.com}, Path: {defaultValue: \"[concat(variables('Base'), '/In')]\"}, \
                      all: {defaultValue: {urls: ['http://a/', 'http://b/']}}";
    let variables = "base: /api, n: 7";
    for (url, expected) in [
        ("[parameters('HOST')]", "error"),
        (
            "[format('https://{0}{1}', parameters('host'), parameters('path'))]",
            "https://h.example.com/api/In",
        ),
        (
            "[concat('https://', parameters('host'), toLower(parameters('path')))]",
            "https://h.example.com/api/in",
        ),
        ("[format('http://h/{{{0}}}', variables('n'))]", "http://h/%7B7%7D"),
        ("[parameters('all').urls[1]]", "http://b/"),
        ("[[http", "error"),
        ("http://h/[x]", "http://h/[x]"),
    ] {
        if expected == "error" {
            let mut found = shown(&read_files(&[&template(parameters, variables, &to(url))]));
            found.retain(|finding| !finding.contains(DEFAULTS));
            assert!(
                found.len() == 1 && found[0].contains("not the address of a webhook"),
                "{found:?}"
            );
        } else {
            assert_eq!(url_of(parameters, variables, url), expected);
        }
    }
}

#[test]
fn values_keep_their_types() {
    let parameters = "attempts: {defaultValue: 5}, filter: {defaultValue: {includedEventTypes: [A], isSubjectCaseSensitive: true}}, \
                      name: {defaultValue: events}";
    let resource = "{type: \"Microsoft.EventGrid/topics/providers/eventSubscriptions\", resourceGroup: g, \
                    name: \"[concat(parameters('name'), '/Microsoft.EventGrid/', 'billing')]\", properties: {\
                    retryPolicy: {maxDeliveryAttempts: \"[parameters('attempts')]\"}, filter: \"[parameters('filter')]\", \
                    destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}}}";
    let (subscription, findings) = loaded(&[&template(parameters, "", resource)]);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert!(finding.starts_with("3:13: warning: parameters: "), "{finding}");
    assert!(
        finding.ends_with(&format!("{DEFAULTS}: \"attempts\", \"filter\", \"name\"")),
        "{finding}"
    );
    assert_eq!(subscription.name.to_string(), "g/events/billing");
    assert_eq!(subscription.retry.max_attempts, 5);
    assert!(!super::takes(
        &subscription,
        r#"{"specversion":"1.0","id":"1","source":"s","type":"B"}"#
    ));
}

#[test]
fn scopes_and_keys_of_destinations_are_ids_of_resources() {
    let resource = |scope: &str, id: &str| {
        format!(
            "{{type: Microsoft.EventGrid/eventSubscriptions, name: s, scope: \"{scope}\", properties: {{destination: \
             {{endpointType: EventHub, properties: {{resourceId: \"{id}\"}}}}}}}}"
        )
    };
    let hub = "[resourceId('Microsoft.EventHub/namespaces/eventhubs', 'n', 'hub')]";
    let key = "/subscriptions/{subscription}/resourceGroups/{resourceGroup}/providers/Microsoft.EventHub/namespaces/n/eventhubs/hub";
    let mapped = format!(
        "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{'{key}': 'http://hub/'}}}}"
    );
    for scope in [
        "[resourceId('g', 'Microsoft.EventGrid/topics', 't')]",
        "[resourceId('s', 'g', 'Microsoft.EventGrid/topics', 't')]",
    ] {
        let (subscription, findings) = loaded(&[&template("", "", &resource(scope, hub)), &mapped]);
        assert_eq!(
            (subscription.name.to_string().as_str(), findings),
            ("g/t/s", vec![]),
            "{scope}"
        );
        assert_eq!(subscription.destination.url.as_str(), "http://hub/");
    }
    for (scope, expected) in [
        (
            "[format('Microsoft.EventGrid/topics/{0}', 't')]",
            "scope: the namespace of the topic t is its resource group",
        ),
        (
            "[resourceId('Microsoft.EventGrid/topics', 't')]",
            "scope: the namespace of the topic t is its resource group",
        ),
        (
            "[resourceId('Microsoft.EventGrid/topics', parameters('t'))]",
            "scope: the value of \"[resourceId('Microsoft.EventGrid/topics', parameters('t'))]\" is not known here: \
             parameters('t') has no default value",
        ),
    ] {
        let found = shown(&read_files(&[&template("", "", &resource(scope, hub)), &mapped]));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:#?}");
    }
}

/// The findings and references of a template with one resource.
fn found(reading: &Reading) -> (Vec<String>, Vec<(&str, ReferenceUse)>) {
    let references = reading.findings.iter().filter_map(|of| of.reference.as_ref());
    (shown(reading), references.map(|of| (of.key.as_str(), of.used_for)).collect())
}

#[test]
fn what_stays_open_is_named_and_only_fields_that_need_it_are_affected() {
    let url = "[parameters('endpoint')]";
    let text = template("endpoint: {type: string}", "", &to(url));
    let reading = read_files(&[&text]);
    let (findings, references) = found(&reading);
    assert_eq!(references, [(url, ReferenceUse::Events)]);
    assert!(
        findings.len() == 1
            && findings[0].starts_with("6:")
            && findings[0].ends_with("the URL is not known here: parameters('endpoint') has no default value; spec: {\"[parameters('endpoint')]\": https://…}"),
        "{findings:?}"
    );
    let mapped = format!(
        "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{\"{url}\": 'http://h/'}}}}"
    );
    assert_eq!(loaded(&[&text, &mapped]).1, Vec::<String>::new());
    // Fields that nothing here needs may be open.
    let unneeded = to("http://h/")
        .replace("properties: {dest", "location: \"[resourceGroup().location]\", properties: {labels: \"[parameters('l')]\", dest");
    assert_eq!(loaded(&[&template("", "", &unneeded)]).1, Vec::<String>::new());
    for (value, why) in [
        ("[uniqueString('a')]", "uniqueString(…) is not evaluated"),
        ("[variables('v')]", "variables('v') is not defined"),
        ("[format('{0}{1}', 'a')]", "its format cannot be read"),
        ("[concat('a'", "it cannot be read"),
        ("[resourceId('a/b', 'c', 'd')]", "its resourceId has a name too few or too many"),
        ("[concat(variables('list'))]", "concat(…) is evaluated for text only"),
        ("[variables('list')[3]]", "a member of it is missing"),
    ] {
        let stated = to("http://h/")
            .replace("dest", &format!("retryPolicy: {{maxDeliveryAttempts: \"{value}\"}}, dest"));
        let closed = value.ends_with(']');
        let (findings, _) = found(&read_files(&[&template("", "list: [1]", &stated)]));
        assert_eq!(findings.len(), 1, "{value}: {findings:#?}");
        assert!(
            !closed || findings[0].contains(&format!("is not known here: {why}")),
            "{findings:?}"
        );
    }
}

#[test]
fn variables_that_name_each_other_end() {
    for variables in [
        "v: \"[variables('v')]\"".to_owned(),
        "v: \"[concat(variables('w'), 'x')]\", w: \"[variables('v')]\"".to_owned(),
        // Each is twice the one before: 2^40 characters.
        std::iter::once("v0: x".to_owned())
            .chain((1..40).map(|n| {
                let before = format!("variables('v{}')", n - 1);
                format!("v{n}: \"[concat({before}, {before})]\"")
            }))
            .chain(["v: \"[variables('v39')]\"".to_owned()])
            .collect::<Vec<_>>()
            .join(", "),
    ] {
        let (findings, _) =
            found(&read_files(&[&template("", &variables, &to("[variables('v')]"))]));
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert!(
            findings[0].contains("the template refers to itself, or is too large"),
            "{findings:?}"
        );
    }
}

#[test]
fn a_resource_that_is_not_deployed_is_not_read() {
    let with = |condition: &str| {
        to("http://h/").replace("name: t/s", &format!("name: t/s, condition: {condition}"))
    };
    for (condition, expected) in [
        ("true", None),
        ("\"[parameters('on')]\"", Some("condition: not read: its condition is false")),
        (
            "\"[equals(1, 2)]\"",
            Some(
                "condition: read whatever its condition is, which is not known here: equals(…) is not evaluated",
            ),
        ),
    ] {
        let reading = read_files(&[&template("on: {defaultValue: false}", "", &with(condition))]);
        let (mut findings, _) = found(&reading);
        findings.retain(|finding| !finding.contains(DEFAULTS));
        let is_read = expected.is_none_or(|expected| !expected.contains("not read:"));
        assert_eq!(reading.catalogue.subscriptions().count(), usize::from(is_read));
        assert_eq!(findings.len(), usize::from(expected.is_some()), "{findings:?}");
        assert!(expected.is_none_or(|expected| findings[0].contains(expected)), "{findings:?}");
    }
}

#[test]
fn text_that_begins_with_a_bracket_is_escaped_by_another() {
    let filter = "filter: {subjectBeginsWith: \"[[a]\"}, dest";
    let (subscription, _) = loaded(&[&template("", "", &to("http://h/").replace("dest", filter))]);
    let event = |subject: &str| {
        format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","subject":"{subject}"}}"#)
    };
    assert!(
        super::takes(&subscription, &event("[a]b"))
            && !super::takes(&subscription, &event("[[a]b"))
    );
}

#[test]
fn one_warning_names_the_parameters_whose_defaults_event_subscriptions_have() {
    let parameters = "host: {defaultValue: h}, unused: {defaultValue: u}, place: {defaultValue: p}, topic: {defaultValue: t}, \
                      sku: {defaultValue: s}";
    let variables = "url: \"[concat('http://', parameters('host'), '/')]\"";
    // What only other resources and fields have does not count, and the name of a topic around does.
    let resource = "{type: Microsoft.EventGrid/topics, name: \"[parameters('topic')]\", properties: {a: \"[parameters('sku')]\"}, \
                    resources: [{type: eventSubscriptions, name: s, location: \"[parameters('place')]\", resourceGroup: g, \
                    lastmile: {topic: g/t}, properties: {destination: {endpointType: WebHook, properties: {endpointUrl: \
                    \"[variables('url')]\"}}}}]}";
    let reading = read_files(&[&template(parameters, variables, resource)]);
    let findings = found(&reading).0;
    let named: Vec<&String> =
        findings.iter().filter(|finding| finding.contains(DEFAULTS)).collect();
    let [finding] = &named[..] else { panic!("{findings:#?}") };
    assert!(finding.ends_with(": \"host\", \"topic\""), "{finding}");
}

#[test]
fn a_resource_that_a_template_does_not_make_is_not_read() {
    let with = |field: &str| to("http://h/").replace("name: t/s", &format!("name: t/s, {field}"));
    for (field, subscriptions, expected) in [
        ("copy: {name: c, count: 0}", 0, "copy.count: not read: there are no copies of it"),
        (
            "copy: {name: c, count: \"[parameters('n')]\"}",
            1,
            "copy.count: read once, whatever the count is",
        ),
        (
            "copy: {name: c, count: 2}",
            0,
            "error: resources[0].copy.count: 2 resources are made of this one",
        ),
        ("copy: {name: c}", 0, "error: resources[0].copy: count is missing"),
        ("existing: true", 0, "existing: not read: the resource exists already"),
    ] {
        let reading = read_files(&[&template("n: {type: int}", "", &with(field))]);
        let (findings, _) = found(&reading);
        assert!(findings.len() == 1 && findings[0].contains(expected), "{field}: {findings:?}");
        assert_eq!(reading.catalogue.subscriptions().count(), subscriptions, "{field}");
    }
    for field in ["copy: {name: c, count: 1}", "existing: false"] {
        assert_eq!(loaded(&[&template("", "", &with(field))]).1, Vec::<String>::new(), "{field}");
    }
}

#[test]
fn fields_that_copy_makes_are_not_left_out_in_silence() {
    let copied = to("http://h/").replace(
        "dest",
        "filter: {copy: [{name: advancedFilters, count: 2, input: {key: subject}}], subjectEndsWith: x}, dest",
    );
    let reading = read_files(&[&template("", "", &copied)]);
    let (findings, _) = found(&reading);
    assert!(
        findings.len() == 1 && findings[0].contains("fields are not made by copy"),
        "{findings:?}"
    );
    assert_eq!(reading.catalogue.subscriptions().count(), 0);
}

#[test]
fn each_field_that_stays_open_is_reported_as_itself() {
    let filter = "filter: {subjectBeginsWith: \"[parameters('a')]\", subjectEndsWith: .jpg}, dest";
    let (findings, _) = found(&read_files(&[&template(
        "a: {type: string}",
        "",
        &to("http://h/").replace("dest", filter),
    )]));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert!(
        finding
            .contains("filter.subjectBeginsWith: the value of \"[parameters('a')]\" is not known"),
        "{finding}"
    );
}

/// A deployment in a template, with these properties beside the template, and fields around them.
fn deployment(properties: &str, around: &str, inner: &str, url: &str) -> String {
    let scope = "resourceId('Microsoft.EventGrid/topics', 't')";
    format!(
        "{{type: Microsoft.Resources/deployments, name: module, {around}properties: {{mode: Incremental, {properties}template: \
         {{{inner}resources: [{{type: Microsoft.EventGrid/eventSubscriptions, name: \"[parameters('n')]\", scope: \
         \"[{scope}]\", properties: {{destination: {{endpointType: WebHook, properties: {{endpointUrl: \"{url}\"}}}}}}}}]}}}}}}"
    )
}

#[test]
fn a_nested_deployment_has_its_own_parameters_where_its_scope_is_inner() {
    let around = "resourceGroup: \"[concat('g', '')]\", ";
    let inner = "expressionEvaluationOptions: {scope: Inner}, parameters: {n: {value: \"[parameters('name')]\"}}, ";
    let own = "parameters: {n: {type: string}, path: {type: string, defaultValue: in}}, \
               variables: {v: \"[format('{0}/x', parameters('path'))]\"}, ";
    let resource = deployment(inner, around, own, "[concat('http://h/', variables('v'))]");
    let parameters = "name: {type: string, defaultValue: outer}, path: {defaultValue: out}";
    let (read, found) = loaded(&[&template(parameters, "v: wrong", &resource)]);
    assert_eq!(
        (read.name.to_string().as_str(), read.destination.url.as_str()),
        ("g/t/outer", "http://h/in/x")
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(DEFAULTS) && found[0].ends_with("\"name\", \"path\""), "{found:?}");
}

#[test]
fn a_nested_deployment_has_the_parameters_around_it_otherwise() {
    let own = "parameters: {n: {defaultValue: wrong}}, ";
    let resource = deployment("", "", own, "http://h/")
        .replace("resourceId('Microsoft", "resourceId('g', 'Microsoft");
    let (read, _) = loaded(&[&template("n: {defaultValue: outer}", "", &resource)]);
    assert_eq!(read.name.to_string(), "g/t/outer");
}

#[test]
fn a_nested_deployment_that_is_not_made_or_not_there_is_a_warning() {
    let said = |resource: &str| {
        let reading = read_files(&[&template("", "", resource)]);
        assert_eq!(reading.catalogue.subscriptions().count(), 0);
        shown(&reading).concat()
    };
    let not_made = deployment("", "condition: false, ", "", "http://h/");
    assert!(
        said(&not_made)
            .contains("warning: resources[0].condition: not read: its condition is false")
    );
    let linked = "{type: Microsoft.Resources/deployments, name: m, properties: {templateLink: {uri: 'http://h/'}}}";
    assert!(
        said(linked).contains(
            "warning: resources[0]: the template that this deployment links to is not read"
        )
    );
}

#[test]
fn a_time_of_expiry_that_stays_open_is_a_warning() {
    let resource = to("http://h/").replace(
        "properties: {destination",
        "properties: {expirationTimeUtc: \"[dateTimeAdd('x', 'P1D')]\", destination",
    );
    let (read, found) = loaded(&[&template("", "", &resource)]);
    assert_eq!(read.expires_ms, None);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("warning: resources[0].properties.expirationTimeUtc: never, because")
    );
}

#[test]
fn a_name_that_stays_open_is_reported_once() {
    let resource = to("http://h/").replace("name: t/s", "name: \"[parameters('n')]\"");
    let found = shown(&read_files(&[&template("n: {type: string}", "", &resource)]));
    let expected = "resources[0].name: the value of \"[parameters('n')]\" is not known here: parameters('n') has no default value";
    assert_eq!(found.iter().filter(|of| of.contains(expected)).count(), 1, "{found:?}");
}
