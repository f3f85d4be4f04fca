//! What every output format of `explain` shows.

use std::sync::Arc;

use delivery::explain::Life;
use delivery::subscription::Subscription;
use delivery::subscription::policy::Setting;

/// A subscription and the life of a delivery under it.
pub(super) struct Explained {
    pub(super) subscription: Arc<Subscription>,
    /// Each setting, and the origin of its value.
    pub(super) policy: Vec<(Setting, String)>,
    pub(super) life: Life,
}
