//! Event Grid on Kubernetes: how its resources are recognised, and what that edition does not
//! support.
//!
//! Separate because a file does not state its edition. The edition is inferred and reported.

use super::source::Located;
use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;

/// API version that Event Grid on Kubernetes accepts.
const VERSION: &str = "2020-10-15-preview";
/// The only type of source in Event Grid on Kubernetes.
const TOPICS: &str = "microsoft.eventgrid/topics";
/// Filter operators that Event Grid on Kubernetes does not support ("Event filtering for
/// subscriptions", Event Grid on Kubernetes).
const LACKING: [&str; 7] = [
    "IsNotNull",
    "IsNullOrUndefined",
    "NumberInRange",
    "NumberNotInRange",
    "StringNotBeginsWith",
    "StringNotContains",
    "StringNotEndsWith",
];
/// Help text that shows how a file states its edition.
const HELP: &str = "confirm with \"lastmile\": {\"dialect\": \"eventgrid-kubernetes\"}, or use \
                    \"eventgrid\" for Event Grid in Azure";

/// Returns the field that marks a resource of Event Grid on Kubernetes: the schema inside the
/// destination, or the version. Both count only for a custom topic or an unknown source, because no
/// other Azure resource exists on Kubernetes.
pub(super) fn sign<'a>(resource: &Cursor<'a>, source: Option<&Located<'_>>) -> Option<Cursor<'a>> {
    let is_possible = source.is_none_or(|(source, _)| source.kind == TOPICS);
    let schema = resource.peek("properties.destination.properties.eventDeliverySchema");
    let version = resource.peek("apiVersion");
    let is_version = |at: &Cursor<'_>| {
        at.peek_text().is_some_and(|text| text.trim().eq_ignore_ascii_case(VERSION))
    };
    let schema = schema.filter(|at| !at.is_null());
    schema.or(version.filter(is_version)).filter(|_| is_possible)
}

/// Adds a warning that the rules of Event Grid on Kubernetes apply to a resource. `sign` is the
/// field that marks the resource, and the position of the warning.
pub(super) fn report(sign: &Cursor<'_>) {
    let message =
        "read as Event Grid on Kubernetes: its time to live, waits and rules for statuses apply";
    sign.warn(Message::new(message).help(HELP));
}

/// Adds a warning for filters that Event Grid on Kubernetes does not support. lastmile supports
/// these filters.
pub(super) fn report_filters(filter: &Cursor<'_>) {
    let lacks = "Event Grid on Kubernetes does not support";
    if let Some(arrays) = filter.peek("enableAdvancedFilteringOnArrays")
        && arrays.is_true()
    {
        arrays.warn(format!("{lacks} filters on arrays; lastmile supports them"));
    }
    let filters = filter.peek("advancedFilters").filter(Cursor::is_list);
    for condition in filters.and_then(|filters| filters.list()).unwrap_or_default() {
        let Some(operator) = condition.peek("operatorType") else { continue };
        let word = operator.peek_text().unwrap_or_default().trim();
        if LACKING.iter().any(|lacking| lacking.eq_ignore_ascii_case(word)) {
            operator.warn(format!("{lacks} the operator {}; lastmile supports it", quoted(word)));
        }
    }
}
