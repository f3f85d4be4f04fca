//! Records the position of each stated value of a subscription, for explanations.
//!
//! This module is separate because the reader records positions and only explanations use them. A
//! complete subscription does not show which values a document states and which come from its
//! profile. Only stated values have an origin.

use std::collections::BTreeMap;

use crate::subscription::Subscription;
use crate::subscription::policy::settings;
use crate::subscription::profile::Profile;

/// The positions of stated values, keyed by the paths of their fields.
///
/// A position is `file:line:column`; several are separated by commas. Any other text names a
/// different source of the value, such as the class of a broker. A field without an entry has the
/// value of the profile. The fields are those of [`settings`], and `url` and `paused`.
pub type Origins = BTreeMap<String, String>;

/// True if every origin belongs to a field of [`settings`], or to `url` or `paused`.
pub(super) fn are_known(origins: &Origins, subscription: &Subscription) -> bool {
    let settings = settings(subscription);
    let is_setting = |field: &str| settings.iter().any(|setting| setting.field == field);
    origins.keys().all(|field| field == "url" || field == "paused" || is_setting(field))
}

/// Sets the origin of `neverRetry` to the positions of `neverRetry` and `retryOn`, if at least one
/// of them is stated. The success statuses get the same origin if they differ from those of the
/// profile and no document states them.
pub(super) fn note_overridden_statuses(origins: &mut Origins, subscription: &Subscription) {
    let stated: Vec<&str> = ["neverRetry", "retryOn"]
        .iter()
        .filter_map(|field| origins.get(*field).map(String::as_str))
        .collect();
    if stated.is_empty() {
        return;
    }
    let locations = stated.join(", ");
    let of_profile = Profile::for_dialect(subscription.dialect).retry.success;
    if (100..=999)
        .any(|status| of_profile.contains(status) != subscription.retry.success.contains(status))
    {
        origins.entry("success".to_owned()).or_insert_with(|| locations.clone());
    }
    origins.insert("neverRetry".to_owned(), locations);
}
