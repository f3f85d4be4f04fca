//! Where each value of a policy was written, for explanations.
//!
//! Separate because the reader fills it and only explanations use it: a complete policy no longer shows
//! which values a document stated and which its profile filled in. Only stated values have an
//! origin.

use std::collections::BTreeMap;

use crate::subscription::Subscription;
use crate::subscription::policy::settings;
use crate::subscription::profile::Profile;

/// Field → where documents state it, as `file:line:column`; several are separated by `, `, and
/// other text says what else decides (the class of a broker). A field without an entry is the
/// profile's.
///
/// The fields are those of [`settings`], and `url`.
pub type Origins = BTreeMap<String, String>;

/// Returns true if each origin is that of a field that can have one.
pub(super) fn are_known(origins: &Origins, subscription: &Subscription) -> bool {
    let settings = settings(subscription);
    let is_setting = |field: &str| settings.iter().any(|setting| setting.field == field);
    origins.keys().all(|field| field == "url" || field == "paused" || is_setting(field))
}

/// `neverRetry` and `retryOn` change which statuses are retried and which are a success: the origin
/// of those values is then where the two are written, not the profile.
pub(super) fn note_overridden_statuses(origins: &mut Origins, subscription: &Subscription) {
    let stated: Vec<&str> = ["neverRetry", "retryOn"]
        .iter()
        .filter_map(|of| origins.get(*of).map(String::as_str))
        .collect();
    if stated.is_empty() {
        return;
    }
    let locations = stated.join(", ");
    let of_profile = Profile::of(subscription.dialect).retry.success;
    if (100..=999)
        .any(|status| of_profile.contains(status) != subscription.retry.success.contains(status))
    {
        origins.entry("success".to_owned()).or_insert_with(|| locations.clone());
    }
    origins.insert("neverRetry".to_owned(), locations);
}
