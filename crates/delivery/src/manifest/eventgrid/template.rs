//! Finds the resources of a document, which may be a template of many.
//!
//! Separate because a template holds resources of every kind, nested in one another. Only event
//! subscriptions are read; the others are warnings. Its expressions are evaluated before.

use super::super::findings::{Message, quoted};
use super::super::reader::Cursor;

/// The fields of a template besides its resources.
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
/// The suffix of types of event subscriptions, in lower case.
pub(super) const SUBSCRIPTIONS: &str = "eventsubscriptions";
/// The type of a deployment in a template, in lower case.
pub(super) const DEPLOYMENTS: &str = "microsoft.resources/deployments";
/// The provider of Event Grid, in lower case.
const PROVIDER: &str = "microsoft.eventgrid/";

/// One event subscription of a document.
pub(super) struct Resource<'a> {
    /// The resource.
    pub(super) cursor: Cursor<'a>,
    /// Its full type, in lower case; empty where there is none.
    pub(super) kind: String,
    /// Its full name with the names of its parent resources, as written; empty where there is none.
    pub(super) path: String,
}

/// Whether a document is a template of resources.
pub(in super::super) fn is_template(document: &Cursor<'_>) -> bool {
    is_template_schema(document.text_at("$schema"))
}

/// Whether this is the `$schema` of a template of resources.
pub(super) fn is_template_schema(schema: &str) -> bool {
    schema.to_ascii_lowercase().contains("deploymenttemplate")
}

/// The event subscriptions of a document: itself, or those of a template.
pub(super) fn resources<'a>(document: &Cursor<'a>) -> Vec<Resource<'a>> {
    let mut found = Vec::new();
    if !is_template(document) {
        found.push(resource(document, "", ""));
        return found;
    }
    document.mapping(|fields| {
        fields.accept(&PARTS);
        if let Some(resources) = fields.required("resources") {
            inside(&resources, "", "", &mut found);
        }
    });
    found
}

/// The resources of a list, or of a mapping from symbolic names; each may hold further ones.
fn inside<'a>(resources: &Cursor<'a>, kind: &str, path: &str, found: &mut Vec<Resource<'a>>) {
    let elements = if resources.is_mapping() {
        resources.entries().map(|entries| entries.into_iter().map(|entry| entry.value).collect())
    } else {
        resources.list()
    };
    for cursor in elements.unwrap_or_default() {
        let resource = resource(&cursor, kind, path);
        if resource.kind == DEPLOYMENTS {
            inside_deployment(&cursor, found);
            continue;
        }
        if let Some(nested) = cursor.peek("resources") {
            inside(&nested, &resource.kind, &resource.path, found);
        }
        if !resource.kind.ends_with(SUBSCRIPTIONS) {
            let kind = cursor
                .peek("type")
                .and_then(|kind| kind.peek_text())
                .unwrap_or("a resource without a type");
            cursor.warn(format!("{} is not read; only event subscriptions are", quoted(kind)));
        } else if is_deployed(&cursor) {
            found.push(resource);
        }
    }
}

/// The resources of a deployment in a template, as Bicep makes of each module.
fn inside_deployment<'a>(deployment: &Cursor<'a>, found: &mut Vec<Resource<'a>>) {
    match deployment.peek("properties.template") {
        Some(_) if !is_deployed(deployment) => {}
        Some(template) => {
            if let Some(resources) = template.peek("resources") {
                inside(&resources, "", "", found);
            }
        }
        None => deployment.warn(
            Message::new("the template that this deployment links to is not read")
                .help("check its file too, or put the template itself here"),
        ),
    }
}

/// Whether a resource is deployed: one that is only referred to is not, nor one whose `condition` is false or that is
/// copied no times.
fn is_deployed(resource: &Cursor<'_>) -> bool {
    if let Some(existing) = resource.peek("existing").filter(Cursor::is_true) {
        existing
            .warn("not read: the resource exists already, and this template does not deploy it");
        return false;
    }
    has_copies(resource) && is_condition_met(resource)
}

/// Whether there is a resource, by the number of its copies. That there are several is reported.
fn has_copies(resource: &Cursor<'_>) -> bool {
    let Some(copy) = resource.peek("copy").filter(|copy| !copy.is_null()) else { return true };
    let Some(count) = copy.peek("count") else {
        copy.error("count is missing");
        return false;
    };
    if let Some(open) = count.open() {
        count.warn(format!(
            "read once, whatever the count is, which is not known here: {}",
            open.why
        ));
        return true;
    }
    match count.integer(0..=800) {
        Some(0) => count.warn("not read: there are no copies of it"),
        Some(1) => return true,
        Some(several) => {
            let message =
                format!("{several} resources are made of this one, which is not done here");
            count.error(Message::new(message).help("write each of them"));
        }
        None => {}
    }
    false
}

fn is_condition_met(resource: &Cursor<'_>) -> bool {
    let Some(condition) = resource.peek("condition") else { return true };
    if let Some(open) = condition.open() {
        condition
            .warn(format!("read whatever its condition is, which is not known here: {}", open.why));
        return true;
    }
    let is_deployed = condition.boolean().unwrap_or(true);
    if !is_deployed {
        condition.warn("not read: its condition is false");
    }
    is_deployed
}

/// A resource with the type and names of its parents.
fn resource<'a>(cursor: &Cursor<'a>, around_kind: &str, around_path: &str) -> Resource<'a> {
    let (kind, name) = (cursor.text_at("type").to_ascii_lowercase(), cursor.text_at("name"));
    let is_full =
        around_kind.is_empty() || kind.starts_with(PROVIDER) && around_kind.starts_with(PROVIDER);
    let joined =
        |around: &str, own: &str| if is_full { own.to_owned() } else { format!("{around}/{own}") };
    Resource {
        cursor: cursor.clone(),
        kind: joined(around_kind, &kind),
        path: joined(around_path, name),
    }
}
