//! The rules, API destinations and connections of all files, joined by ARN and name.
//!
//! Separate because each resource is the output of a separate command (`aws events describe-rule`
//! and so on), or comes from a CloudFormation template. The resources of a template refer to each
//! other by logical ids.

use delivery::document::reader::Cursor;

use super::secrets::Variables;

/// The EventBridge resources that the files describe.
#[derive(Default)]
pub(super) struct Resources<'a> {
    pub(super) rules: Vec<Rule<'a>>,
    pub(super) destinations: Vec<Resource<'a>>,
    pub(super) connections: Vec<Resource<'a>>,
    pub(super) buses: Vec<Resource<'a>>,
    /// Environment variables for the secrets of all connections.
    pub(super) variables: Variables,
}

pub(super) struct Rule<'a> {
    pub(super) name: &'a str,
    pub(super) at: Cursor<'a>,
    /// Targets of the rule; `None` if no file has them.
    pub(super) targets: Option<Vec<Cursor<'a>>>,
}

/// An API destination, a connection or an event bus.
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    /// The ARN, or the logical id in a template.
    pub(super) id: &'a str,
    pub(super) at: Cursor<'a>,
}

/// Finds the resource that a reference names by its ARN, its logical id, or its name. A logical id
/// is looked up only in the file of the reference, because two templates may use the same id.
pub(super) fn named<'r, 'a>(
    all: &'r [Resource<'a>],
    reference: &str,
    at: &Cursor<'_>,
) -> Option<&'r Resource<'a>> {
    let is_here = |resource: &Resource<'_>| resource.at.position().file == at.position().file;
    let by_id = all
        .iter()
        .find(|resource| resource.id == reference && (is_arn(reference) || is_here(resource)));
    by_id.or_else(|| {
        let name = name_in(reference)?;
        // Compare only names, because a resource of a template has no ARN.
        all.iter().find(|resource| resource.name == name && !is_arn(resource.id))
    })
}

fn is_arn(id: &str) -> bool {
    id.starts_with("arn:")
}

/// Returns the name in an ARN such as
/// `arn:aws:events:eu-west-1:123456789012:api-destination/billing/6a2f…`.
pub(super) fn name_in(arn: &str) -> Option<&str> {
    arn.strip_prefix("arn:")?.split('/').nth(1)
}

/// Returns the ARN in a field, or the logical id of a resource in the same template; `None` for any
/// other function.
pub(super) fn reference(at: &Cursor<'_>) -> Option<String> {
    let of_attribute = at.peek("Fn::GetAtt");
    let first = of_attribute.as_ref().and_then(|attribute| attribute.peek_list().first().cloned());
    let named = first.or(of_attribute).or_else(|| at.peek("Ref"));
    let text = named.or_else(|| at.peek("Fn::Sub")).as_ref().unwrap_or(at).peek_text()?;
    let of_variable = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
    let text = of_variable.unwrap_or(text);
    let id = text.split('.').next().filter(|_| !is_arn(text)).unwrap_or(text);
    Some(id.to_owned())
}
