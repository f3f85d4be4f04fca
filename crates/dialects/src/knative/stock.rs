//! The note that subscriptions have the retry settings of stock Knative.
//!
//! Separate because there is one note for all subscriptions: the files do not show these settings,
//! and the cluster may have others.

use std::cell::RefCell;

use super::delivery_spec::{STOCK_ORIGIN, STOCK_TEXT};
use delivery::document::findings::Message;
use delivery::document::reader::Cursor;
use delivery::native::Origins;

/// True if the number of attempts is the default of stock Knative, according to the origins of a
/// subscription's values.
#[must_use]
pub fn is_stock_knative(origins: &Origins) -> bool {
    origins.get("maxAttempts").is_some_and(|origin| origin == STOCK_ORIGIN)
}

/// The number of subscriptions with stock settings so far, and the position of the first one.
#[derive(Default)]
pub(super) struct StockDefaults<'a>(RefCell<Option<(usize, Cursor<'a>)>>);

impl<'a> StockDefaults<'a> {
    /// Counts a subscription with stock settings. Does nothing if `at` is `None`.
    pub(super) fn count(&self, at: Option<Cursor<'a>>) {
        let Some(at) = at else { return };
        let mut counted = self.0.borrow_mut();
        *counted = Some(counted.take().map_or((1, at), |(number, first)| (number + 1, first)));
    }

    /// Reports all subscriptions with stock settings in one note.
    pub(super) fn report(self) {
        let Some((number, first)) = self.0.into_inner() else { return };
        let subscriptions = match number {
            1 => "1 subscription has".to_owned(),
            number => format!("{number} subscriptions have"),
        };
        let message = format!(
            "{subscriptions} the retry settings of stock Knative for a Broker without delivery: {STOCK_TEXT}"
        );
        first.note(Message::new(message).help(
            "if your cluster has other settings, copy class and delivery from kubectl get broker \
             -o yaml to the Broker",
        ));
    }
}
