//! The delivery settings of one document: every field is optional, so that one document can
//! override another.
//!
//! Separate because defaults have an order: the Subscription, then its Topic, then the profile.
//! [`Settings::with_fallback`] merges the first two field by field; [`Settings::complete`] fills in
//! the third. A list, a schedule or a mapping of statuses is one field: it is overridden as a
//! whole.

use std::sync::Arc;

use super::super::destinations::Destinations;
use super::super::reader::{Cursor, Fields};
use super::batch::BatchSettings;
use super::dead_letter::DeadLetterSettings;
use super::destination::{DestinationSettings, Scope};
use super::retry::RetrySettings;
use crate::subscription::Subscription;
use crate::subscription::filter::Filter;
use crate::subscription::name::SubscriptionName;
use crate::subscription::profile::{Dialect, Profile};

/// The delivery settings of one document.
#[derive(Clone, Default)]
pub(super) struct Settings {
    destination: DestinationSettings,
    retry: RetrySettings,
    batch: BatchSettings,
    dead_letter: Option<DeadLetterSettings>,
    paused: Option<bool>,
}

impl Settings {
    /// Reads the fields that a Topic's `delivery` and a Subscription's `spec` have in common.
    pub(super) fn read(fields: &Fields<'_>, scope: Scope, destinations: &Destinations<'_>) -> Self {
        let read_destination = |of: &Fields<'_>| DestinationSettings::read(of, scope, destinations);
        let destination = match scope {
            Scope::Topic => fields.section("destination", read_destination),
            Scope::Subscription => {
                fields.required("destination").and_then(|of| of.mapping(read_destination))
            }
        };
        Self {
            destination: destination.unwrap_or_default(),
            retry: fields.section("retry", RetrySettings::read).unwrap_or_default(),
            batch: fields.section("batch", BatchSettings::read).unwrap_or_default(),
            dead_letter: fields.read("deadLetter", |at| DeadLetterSettings::read(at, destinations)),
            paused: fields.read("paused", Cursor::boolean),
        }
    }

    /// These settings, with `base` where they say nothing.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        Self {
            destination: self.destination.with_fallback(&base.destination),
            retry: self.retry.with_fallback(&base.retry),
            batch: self.batch.with_fallback(base.batch),
            dead_letter: match (self.dead_letter, &base.dead_letter) {
                (Some(own), Some(base)) => Some(own.with_fallback(base)),
                (own, base) => own.or_else(|| base.clone()),
            },
            paused: self.paused.or(base.paused),
        }
    }

    /// A subscription with the profile's defaults filled in; `None` where the URL could not be
    /// read.
    pub(super) fn complete(self, name: SubscriptionName, filter: Filter) -> Option<Subscription> {
        let profile = Profile::of(Dialect::Native);
        Some(Subscription {
            name,
            dialect: profile.dialect,
            destination: self.destination.complete(&profile)?,
            mapping: Arc::default(),
            filter,
            dead_letter: self.dead_letter.unwrap_or_default().complete(&profile),
            retry: self.retry.complete(profile.retry),
            batch: self.batch.complete(),
            paused: self.paused.unwrap_or(false),
            reply: None,
            expires_ms: None,
        })
    }
}
