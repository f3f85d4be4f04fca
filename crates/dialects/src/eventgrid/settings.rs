//! Translates `properties`, the delivery settings of a resource. Each part has its own module.
//!
//! Separate because a namespace's push subscription has the same settings in other positions:
//! limits and destination are inside `deliveryConfiguration`.

use serde_json::json;

use super::context::Context;
use super::endpoint::{self, Called, Endpoint};
use super::identity::LastmileSection;
use super::properties::unused;
use super::{dead_letter, filter, kubernetes, retry, words};
use delivery::document::findings::{Message, quoted};
use delivery::document::node::Node;
use delivery::document::reader::{Cursor, Fields};
use delivery::event::schema::Schema;
use delivery::subscription::filter::Filter;
use delivery::subscription::kinds::{batches, conditions};
use delivery::subscription::profile::Dialect;
use delivery::time::moment::{self, AzureTime};

/// Translates the fields of `properties`. Returns the dialect, which changes if the endpoint is an
/// Azure resource.
pub(super) fn translate(
    fields: &Fields<'_>,
    dialect: Dialect,
    own: &LastmileSection<'_>,
    context: &mut Context<'_>,
) -> Option<Dialect> {
    // Fields that Azure adds to exported resources, and fields for people.
    fields.accept(&["labels", "provisioningState", "topic", "systemData"]);
    if let Some(filter) = fields.given("filter").filter(|_| dialect == Dialect::EventGridKubernetes)
    {
        kubernetes::report_filters(&filter);
    }
    if let Some(at) = fields.given("expirationTimeUtc") {
        let expires = expiration_ms(&at).map(moment::written);
        context.to.set_some("expires", expires, |time| json!(time), Some(&at));
    }
    if let Some(filter) =
        filter::read(fields, dialect).filter(|filter| *filter != Filter::EVERYTHING)
    {
        let at = ["filter", "filtersConfiguration"].into_iter().find_map(|name| fields.given(name));
        context.to.set(
            "filter",
            &conditions::written(&filter),
            at.as_ref().unwrap_or(fields.parent()),
        );
    }
    let endpoint = match fields.given("deliveryConfiguration") {
        Some(configuration) => {
            let push = configuration.mapping(push).flatten();
            let endpoint = push.and_then(|push| {
                push.mapping(|push| {
                    retry::push(push, &mut context.to);
                    delivery(push, context)
                })
            });
            endpoint.flatten()
        }
        None => {
            fields.section("retryPolicy", |policy| retry::policy(policy, dialect, &mut context.to));
            delivery(fields, context)
        }
    };
    let inside = endpoint.as_ref().and_then(|endpoint| endpoint.schema.clone());
    if let Some((schema, at)) = one_schema(endpoint::schema(fields), inside) {
        if dialect == Dialect::EventGridNamespace && schema != Schema::CloudEventsStructured {
            let message = Message::new("topics of a namespace support only CloudEvents");
            at.error(message.help("use CloudEventSchemaV1_0, or omit the field"));
        }
        context.to.set("destination.schema", &json!(schema.as_str()), &at);
    }
    refusals(own, context);
    let Endpoint { called, is_resource, .. } = endpoint?;
    let Called { key, at, asked, .. } = called;
    context.destinations.complete(&mut context.to.document, &asked, (&key, &at))?;
    let is_of_resource = is_resource && dialect == Dialect::EventGrid;
    Some(if is_of_resource { Dialect::EventGridResource } else { dialect })
}

/// Translates the setting in `lastmile` for refused batches.
fn refusals(own: &LastmileSection<'_>, context: &mut Context<'_>) {
    let Some((on_refused, at)) = &own.on_refused else { return };
    match context.to.document.get("spec.batch").and_then(Node::text) {
        Some(_) => batches::report_without_batch(at),
        None => context.to.set("batch.onRefused", &json!(on_refused.as_str()), at),
    }
}

/// Returns the delivery schema, which is stated beside the destination or inside it.
fn one_schema<'a>(
    outer: Option<(Schema, Cursor<'a>)>,
    inside: Option<(Schema, Cursor<'a>)>,
) -> Option<(Schema, Cursor<'a>)> {
    if let (Some((outer, _)), Some((inside, at))) = (&outer, &inside)
        && outer != inside
    {
        at.error(
            "the properties of the subscription have a different eventDeliverySchema; remove one \
             of the two",
        );
    }
    outer.or(inside)
}

/// Translates the destinations of events and dead letters, which have the same form in `properties`
/// and in `push`.
fn delivery<'a>(fields: &Fields<'a>, context: &mut Context<'_>) -> Option<Endpoint<'a>> {
    let endpoint = destination(fields, context);
    dead_letter::translate(fields, context);
    endpoint
}

/// Reads the destination inside `deliveryWithResourceIdentity`. Reads `destination` instead if that
/// section is missing or has only an identity.
fn destination<'a>(fields: &Fields<'a>, context: &mut Context<'_>) -> Option<Endpoint<'a>> {
    let Some(delivery) = fields.given("deliveryWithResourceIdentity") else {
        return Endpoint::read(&fields.required("destination")?, context);
    };
    let has_destination =
        delivery.peek("destination").is_some_and(|destination| !destination.is_null());
    let other = fields.given("destination");
    if let Some(other) = other.as_ref().filter(|_| !has_destination) {
        // This section has only an identity, which has no effect here.
        delivery.mapping(|delivery| {
            delivery.accept(&["destination"]);
            unused(delivery, "identity");
        });
        return Endpoint::read(other, context);
    }
    if let Some(other) = other {
        other.error("deliveryWithResourceIdentity is also set; remove one of the two");
    }
    delivery.mapping(|delivery| {
        unused(delivery, "identity");
        Endpoint::read(&delivery.required("destination")?, context)
    })?
}

/// Returns the section `push` of a delivery configuration.
fn push<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    // Accept both fields even if the delivery mode is invalid.
    fields.accept(&["push", "queue"]);
    let mode = fields.required("deliveryMode")?;
    let text = mode.peek_text().unwrap_or_default().trim();
    if ["Pull", "Queue"].iter().any(|pull| pull.eq_ignore_ascii_case(text)) {
        return mode.refuse(
            Message::new("pull delivery is not supported")
                .help("use deliveryMode: Push with a destination"),
        );
    }
    words::read(&mode, &[("Push", ())])?;
    fields.required("push")
}

/// Returns the expiration time of the subscription in milliseconds; `None` if the subscription
/// never expires, or expires after the year 9999.
fn expiration_ms(cursor: &Cursor<'_>) -> Option<u64> {
    let text = cursor.text()?;
    let Some(expires) = AzureTime::parse(text) else {
        let message = Message::new(format!("{} is not an RFC 3339 time", quoted(text)));
        return cursor.refuse(message.help("expected a time such as 2026-12-31T00:00:00Z"));
    };
    expires.ms()
}
