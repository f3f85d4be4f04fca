//! `properties`: the delivery settings of a resource, read by the modules of its parts.
//!
//! Separate because a push subscription of a namespace has the same settings elsewhere: limits and
//! destination are inside `deliveryConfiguration`.

use url::Url;

use super::super::findings::{Message, quoted};
use super::super::native::{self, Stated};
use super::super::origins::Origins;
use super::super::reader::{Cursor, Fields};
use super::super::{Described, statuses};
use super::dead_letter::DeadLetters;
use super::endpoint::{self, Called, Endpoint};
use super::identity::LastmileSection;
use super::retry::Limits;
use super::{Context, filter, kubernetes, words};
use crate::event::schema::Schema;
use crate::subscription::filter::Filter;
use crate::subscription::name::SubscriptionName;
use crate::subscription::profile::Dialect;
use crate::subscription::{DeliverySettings, Destination, Subscription};
use crate::time::moment::AzureTime;

/// The delivery settings of a resource.
pub(super) struct Settings<'a> {
    endpoint: Option<Endpoint<'a>>,
    schema: Option<(Schema, Cursor<'a>)>,
    limits: Limits,
    dead_letters: DeadLetters,
    filter: Option<Filter>,
    expires_ms: Option<u64>,
}

impl<'a> Settings<'a> {
    /// Reads the fields of `properties`.
    pub(super) fn read(fields: &Fields<'a>, dialect: Dialect, context: &mut Context<'_>) -> Self {
        // Fields that Azure adds to exported resources, and fields for people.
        fields.accept(&["labels", "provisioningState", "topic", "systemData"]);
        if let Some(filter) =
            fields.given("filter").filter(|_| dialect == Dialect::EventGridKubernetes)
        {
            kubernetes::report_filters(&filter);
        }
        let expires_ms =
            fields.given("expirationTimeUtc").and_then(|cursor| expiration_ms(&cursor));
        let filter = filter::read(fields, dialect);
        let (endpoint, limits, dead_letters) = match fields.given("deliveryConfiguration") {
            Some(configuration) => {
                let push = configuration.mapping(push).flatten();
                let read = push.and_then(|push| {
                    push.mapping(|push| {
                        let limits = Limits::of_push(push, context);
                        let (endpoint, dead_letters) = delivery(push, context);
                        (endpoint, limits, dead_letters)
                    })
                });
                read.unwrap_or_default()
            }
            None => {
                let limits =
                    fields.section("retryPolicy", |of| Limits::of_policy(of, dialect, context));
                let (endpoint, dead_letters) = delivery(fields, context);
                (endpoint, limits.unwrap_or_default(), dead_letters)
            }
        };
        let schema = one_schema(
            endpoint::schema(fields),
            endpoint.as_ref().and_then(|of| of.schema.clone()),
        );
        context.note("schema", schema.as_ref().map(|(_, at)| at));
        if let Some((schema, at)) = &schema
            && dialect == Dialect::EventGridNamespace
            && *schema != Schema::CloudEventsStructured
        {
            let message = Message::new("the topics of a namespace have CloudEvents only");
            at.error(message.help("CloudEventSchemaV1_0, or leave it out"));
        }
        Self { endpoint, schema, limits, dead_letters, filter, expires_ms }
    }

    /// The subscription, and where its values are written: its own, over those of its topic's `delivery`, over
    /// the defaults of its dialect. `None` where a part could not be read.
    pub(super) fn complete(
        self,
        name: SubscriptionName,
        dialect: Dialect,
        own: &LastmileSection<'_>,
        delivery: Option<&Cursor<'a>>,
        context: Context<'_>,
    ) -> Option<Described<'a>> {
        let Endpoint { called, is_resource, headers, batch, .. } = self.endpoint?;
        let Called { url, key, at, asked } = called;
        let ((schema, schema_at), (batch, batch_at)) = (self.schema.unzip(), batch.unzip());
        let dialect = if is_resource && dialect == Dialect::EventGrid {
            Dialect::EventGridResource
        } else {
            dialect
        };
        let new = of_dialect(name, dialect, url);
        let (new, stated) = match delivery {
            Some(delivery) => native::over_dialect(delivery, new),
            None => (new, Stated::default()),
        };
        let mut retry = new.retry;
        retry.max_attempts = self.limits.max_attempts.unwrap_or(retry.max_attempts);
        retry.time_to_live_ms = self.limits.time_to_live_ms.or(retry.time_to_live_ms);
        statuses::override_meaning(&mut retry, &own.never_retry, &own.retry_on);
        let destination = Destination {
            schema: schema.or(new.destination.schema),
            headers: headers.unwrap_or(new.destination.headers),
            max_per_second: own.max_per_second.or(new.destination.max_per_second),
            hide_path: own.hide_path.unwrap_or(new.destination.hide_path),
            ..new.destination
        };
        let destination = context.destinations.with_access(destination, &asked, (&key, &at));
        let mut origins: Origins = stated.origins.into_iter().chain(context.origins).collect();
        context.destinations.note_access(&asked, &key, &mut origins);
        let subscription = Subscription {
            destination: destination?,
            filter: self.filter?,
            dead_letter: self.dead_letters.complete(new.dead_letter, own),
            retry,
            batch: own.refine(batch.unwrap_or(new.batch)),
            expires_ms: self.expires_ms,
            ..new
        };
        Some(Described {
            subscription,
            origins,
            schema_at: schema_at.or(stated.schema_at),
            batch_at: batch_at.or(stated.batch_at),
            dead_letters_at: stated.dead_letters_at,
            secrets_at: stated.secrets_at,
        })
    }
}

/// A subscription with the defaults of its dialect.
fn of_dialect(name: SubscriptionName, dialect: Dialect, url: Url) -> Subscription {
    Subscription::with_settings(name, dialect, DeliverySettings::of(dialect, url))
}

/// The schema beside the destination or inside it.
fn one_schema<'a>(
    outer: Option<(Schema, Cursor<'a>)>,
    inside: Option<(Schema, Cursor<'a>)>,
) -> Option<(Schema, Cursor<'a>)> {
    if let (Some((outer, _)), Some((inside, at))) = (&outer, &inside)
        && outer != inside
    {
        at.error("the properties of the subscription have another eventDeliverySchema; it can be only one of them");
    }
    outer.or(inside)
}

/// Where events and dead letters go, the same in `properties` and in `push`.
fn delivery<'a>(
    fields: &Fields<'a>,
    context: &mut Context<'_>,
) -> (Option<Endpoint<'a>>, DeadLetters) {
    let endpoint = destination(fields, context);
    (endpoint, DeadLetters::read(fields, context))
}

/// `destination`, or the one inside `deliveryWithResourceIdentity`, which may have nothing but an identity.
fn destination<'a>(fields: &Fields<'a>, context: &mut Context<'_>) -> Option<Endpoint<'a>> {
    let Some(delivery) = fields.given("deliveryWithResourceIdentity") else {
        return Endpoint::read(&fields.required("destination")?, context);
    };
    let has_destination =
        delivery.peek("destination").is_some_and(|destination| !destination.is_null());
    let other = fields.given("destination");
    if let Some(other) = other.as_ref().filter(|_| !has_destination) {
        // An identity alone, which is not needed here.
        delivery.mapping(|delivery| {
            delivery.accept(&["destination"]);
            endpoint::unused(delivery, "identity");
        });
        return Endpoint::read(other, context);
    }
    if let Some(other) = other {
        other.error("deliveryWithResourceIdentity is given too; it can be only one of them");
    }
    delivery.mapping(|delivery| {
        endpoint::unused(delivery, "identity");
        Endpoint::read(&delivery.required("destination")?, context)
    })?
}

/// `push` of a delivery configuration.
fn push<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    // Both are known in every mode, even an invalid one.
    fields.accept(&["push", "queue"]);
    let mode = fields.required("deliveryMode")?;
    let text = mode.peek_text().unwrap_or_default().trim();
    if ["Pull", "Queue"].iter().any(|pull| pull.eq_ignore_ascii_case(text)) {
        return mode.refuse(
            Message::new("pull delivery is not supported")
                .help("deliveryMode: Push, with a destination"),
        );
    }
    words::read(&mode, &[("Push", ())])?;
    fields.required("push")
}

/// When the subscription expires; `None` where that is never, or after the year 9999.
fn expiration_ms(cursor: &Cursor<'_>) -> Option<u64> {
    let text = cursor.text()?;
    let Some(expires) = AzureTime::parse(text) else {
        let message = Message::new(format!("{} is not an RFC 3339 time", quoted(text)));
        return cursor.refuse(message.help("a time looks like 2026-12-31T00:00:00Z"));
    };
    expires.ms()
}
