//! Event Grid on Kubernetes: which resources are read as such, and what that edition cannot do.
//!
//! Separate because a file does not say which edition it is for: that is concluded, and said.

use super::source::Located;
use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;

/// The version of the resources that Event Grid on Kubernetes takes.
const VERSION: &str = "2020-10-15-preview";
/// The only kind of source that it has.
const TOPICS: &str = "microsoft.eventgrid/topics";
/// The operators that it lacks ("Event filtering for subscriptions", Event Grid on Kubernetes).
const LACKING: [&str; 7] = [
    "IsNotNull",
    "IsNullOrUndefined",
    "NumberInRange",
    "NumberNotInRange",
    "StringNotBeginsWith",
    "StringNotContains",
    "StringNotEndsWith",
];
/// How to say which edition a file is for.
const HELP: &str = "\"lastmile\": {\"dialect\": \"eventgrid-kubernetes\"} confirms it, \"eventgrid\" is Event Grid in Azure";

/// The field by which a resource is one of Event Grid on Kubernetes: the schema inside its destination, or the
/// version, on a subscription of a custom topic or of no known source. Nothing else of Azure lives there.
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

/// Says that a resource is read as one of Event Grid on Kubernetes, at the field that says so.
pub(super) fn report(sign: &Cursor<'_>) {
    let message = "read as Event Grid on Kubernetes: its time to live, waits and statuses apply";
    sign.warn(Message::new(message).help(HELP));
}

/// Warns of filters that Event Grid on Kubernetes does not have. They work here.
pub(super) fn report_filters(filter: &Cursor<'_>) {
    let lacks = "Event Grid on Kubernetes does not have";
    if let Some(arrays) = filter.peek("enableAdvancedFilteringOnArrays")
        && arrays.is_true()
    {
        arrays.warn(format!("{lacks} filters on arrays; here they work"));
    }
    let filters = filter.peek("advancedFilters").filter(Cursor::is_list);
    for one in filters.and_then(|filters| filters.list()).unwrap_or_default() {
        let Some(operator) = one.peek("operatorType") else { continue };
        let word = operator.peek_text().unwrap_or_default().trim();
        if LACKING.iter().any(|lacking| lacking.eq_ignore_ascii_case(word)) {
            operator.warn(format!("{lacks} the operator {}; here it works", quoted(word)));
        }
    }
}
