//! The delivery settings of a document: those that it states, and defaults for the others.
//!
//! Separate because defaults have an order: the Subscription, then its Topic, then the profile. The
//! Topic's `delivery` is the base of the Subscription's `spec`, so that each field is read where it
//! is first stated. A list, a schedule or a mapping of statuses is one field: it is overridden as a
//! whole.

use std::sync::Arc;

use super::super::batches;
use super::super::destinations::Destinations;
use super::super::reader::{Cursor, Fields};
use super::destination::Scope;
use super::{dead_letter, destination, retry};
use crate::subscription::filter::Filter;
use crate::subscription::name::SubscriptionName;
use crate::subscription::profile::{Dialect, Profile, RetryPolicy};
use crate::subscription::{Batch, DeadLetterPolicy, Destination, Subscription};

/// The delivery settings of a document.
pub(super) struct Settings {
    /// `None` where the URL could not be read.
    destination: Option<Destination>,
    retry: RetryPolicy,
    batch: Option<Batch>,
    dead_letter: DeadLetterPolicy,
    paused: bool,
}

impl Settings {
    /// Reads the fields that a Topic's `delivery` and a Subscription's `spec` have in common.
    pub(super) fn read(fields: &Fields<'_>, scope: Scope, destinations: &Destinations<'_>) -> Self {
        let profile = Profile::of(Dialect::Native);
        let at = match scope {
            Scope::Topic => fields.given("destination"),
            Scope::Subscription => fields.required("destination"),
        };
        let destination = at.and_then(|at| {
            at.mapping_over(fields.of_base("destination"), |of| {
                destination::read(of, scope, destinations, &profile)
            })
        });
        let retry = fields.merged_section("retry", |of| retry::read(of, profile.retry.clone()));
        Self {
            destination: destination.flatten(),
            batch: fields.merged_section("batch", batch).flatten(),
            dead_letter: dead_letter::read(fields, destinations, DeadLetterPolicy::of(&profile)),
            retry: retry.unwrap_or(profile.retry),
            paused: fields.read("paused", Cursor::boolean).unwrap_or(false),
        }
    }

    /// Reads the fields of a Topic's `delivery`, and lays them over a subscription of another family.
    pub(super) fn over(
        fields: &Fields<'_>,
        base: Subscription,
        destinations: &Destinations<'_>,
    ) -> Subscription {
        let Subscription { destination, retry, batch: of_base, dead_letter, paused, .. } = base;
        let of_destination =
            fields.section("destination", |of| destination::read_over(of, destination.clone()));
        let of_retry = fields.section("retry", |of| retry::read(of, retry.clone()));
        Subscription {
            destination: of_destination.unwrap_or(destination),
            retry: of_retry.unwrap_or(retry),
            batch: fields.section("batch", batch).flatten().or(of_base),
            dead_letter: dead_letter::read(fields, destinations, dead_letter),
            paused: fields.read("paused", Cursor::boolean).unwrap_or(paused),
            ..base
        }
    }

    /// The subscription with these settings.
    pub(super) fn complete(self, name: SubscriptionName, filter: Filter) -> Option<Subscription> {
        Some(Subscription {
            name,
            dialect: Dialect::Native,
            destination: self.destination?,
            mapping: Arc::default(),
            filter,
            dead_letter: self.dead_letter,
            retry: self.retry,
            batch: self.batch,
            paused: self.paused,
            reply: None,
            expires_ms: None,
        })
    }
}

/// Reads the fields of `batch`, which only together say whether there is one: a Topic may state what
/// a refusal means, and leave it to its Subscriptions whether to batch at all.
fn batch(fields: &Fields<'_>) -> Option<Batch> {
    batches::of(
        fields.read("maxEvents", batches::events),
        fields.read("preferredKilobytes", batches::kilobytes),
        fields.read("onRefused", batches::on_refused),
    )
}
