//! Finds the event subscriptions in a document, which may be an Azure Resource Manager (ARM)
//! template with many resources.
//!
//! Separate because a template has nested resources of every type. Only event subscriptions are
//! read, and each other resource causes a warning.

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;

/// Fields of an ARM template, except its resources.
const PARTS: [&str; 11] = [
    "$schema",
    "apiProfile",
    "contentVersion",
    "definitions",
    "functions",
    "imports",
    "languageVersion",
    "metadata",
    "outputs",
    "parameters",
    "variables",
];
/// Suffix of the types of event subscriptions, in lower case.
const SUBSCRIPTIONS: &str = "eventsubscriptions";
/// Type of a nested deployment in a template, in lower case.
const DEPLOYMENTS: &str = "microsoft.resources/deployments";
/// Provider of Event Grid, in lower case.
const PROVIDER: &str = "microsoft.eventgrid/";

/// One event subscription of a document.
pub(super) struct Resource<'a> {
    pub(super) cursor: Cursor<'a>,
    /// Full type in lower case; empty if the resource has no type.
    pub(super) kind: String,
    /// Full name as written, including the names of parent resources; empty if there is no name, or
    /// if the name is an expression.
    pub(super) path: String,
    /// The first expression in the names of the resource and its parents.
    pub(super) name_expression: Option<Cursor<'a>>,
}

/// True if the document is an Azure Resource Manager (ARM) template.
pub(crate) fn is_template(document: &Cursor<'_>) -> bool {
    document.text_at("$schema").to_ascii_lowercase().contains("deploymenttemplate")
}

/// Returns the event subscriptions in a document: the document itself, or those in a template.
pub(super) fn resources<'a>(document: &Cursor<'a>) -> Vec<Resource<'a>> {
    // Only Azure assigns ids, so a resource with an id was exported, and its values are literal.
    let in_template = document.clone().in_template();
    let is_exported = !in_template.text_at("id").is_empty();
    let document = if is_exported { document.clone() } else { in_template };
    if !is_template(&document) {
        return vec![resource(&document, None)];
    }
    let mut found = Vec::new();
    document.mapping(|fields| {
        fields.accept(&PARTS);
        if let Some(resources) = fields.required("resources") {
            inside(&resources, None, &mut found);
        }
    });
    found
}

/// Adds the event subscriptions in a list of resources, or in a mapping keyed by symbolic names.
/// Each resource may contain nested resources.
fn inside<'a>(
    resources: &Cursor<'a>,
    parent: Option<&Resource<'a>>,
    found: &mut Vec<Resource<'a>>,
) {
    let elements = if resources.is_mapping() {
        resources.entries().map(|entries| entries.into_iter().map(|entry| entry.value).collect())
    } else {
        resources.list()
    };
    for cursor in elements.unwrap_or_default() {
        let resource = resource(&cursor, parent);
        if resource.kind == DEPLOYMENTS {
            inside_deployment(&cursor, found);
            continue;
        }
        if let Some(nested) = cursor.peek("resources") {
            inside(&nested, Some(&resource), found);
        }
        if !resource.kind.ends_with(SUBSCRIPTIONS) {
            let kind = cursor
                .peek("type")
                .and_then(|kind| kind.peek_text())
                .unwrap_or("a resource without a type");
            cursor.warn(format!("{} is ignored; only event subscriptions are read", quoted(kind)));
        } else if is_deployed(&cursor) {
            found.push(resource);
        }
    }
}

/// Adds the event subscriptions in a nested deployment, which Bicep creates for each module.
fn inside_deployment<'a>(deployment: &Cursor<'a>, found: &mut Vec<Resource<'a>>) {
    match deployment.peek("properties.template") {
        Some(_) if !is_deployed(deployment) => {}
        Some(template) => {
            if let Some(resources) = template.peek("resources") {
                inside(&resources, None, found);
            }
        }
        None => deployment.warn(
            Message::new("the linked template of this deployment is not read")
                .help("check its file too, or inline the template"),
        ),
    }
}

/// True if the template deploys the resource. False, with a warning, if the template only refers to
/// the resource, or its `condition` is false.
fn is_deployed(resource: &Cursor<'_>) -> bool {
    if let Some(existing) = resource.peek("existing").filter(Cursor::is_true) {
        existing.warn("ignored: the resource already exists, and this template does not deploy it");
        return false;
    }
    is_condition_met(resource)
}

fn is_condition_met(resource: &Cursor<'_>) -> bool {
    let Some(condition) = resource.peek("condition") else { return true };
    if condition.is_expression() {
        let message = "template expressions are not evaluated: the condition is assumed to be true";
        condition.warn(Message::new(message).help("remove the resource if it is not deployed"));
        return true;
    }
    let is_deployed = condition.boolean().unwrap_or(true);
    if !is_deployed {
        condition.warn("ignored: its condition is false");
    }
    is_deployed
}

/// Creates a resource. Its type and name are prefixed with those of its parents, unless its own
/// type is already full.
fn resource<'a>(cursor: &Cursor<'a>, parent: Option<&Resource<'a>>) -> Resource<'a> {
    let kind = cursor.text_at("type").to_ascii_lowercase();
    let around = parent.filter(|parent| {
        let is_full = kind.starts_with(PROVIDER) && parent.kind.starts_with(PROVIDER);
        !parent.kind.is_empty() && !is_full
    });
    let joined = |around: Option<&str>, own: &str| {
        around.map_or_else(|| own.to_owned(), |around| format!("{around}/{own}"))
    };
    let own = cursor.peek("name").filter(Cursor::is_expression);
    let name_expression = around.and_then(|around| around.name_expression.clone()).or(own);
    let path = joined(around.map(|parent| parent.path.as_str()), cursor.text_at("name"));
    Resource {
        cursor: cursor.clone(),
        kind: joined(around.map(|parent| parent.kind.as_str()), &kind),
        path: if name_expression.is_none() { path } else { String::new() },
        name_expression,
    }
}
