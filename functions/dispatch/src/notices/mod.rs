//! Notices: events about destinations that changed, for the subscribers of one topic.
//!
//! A notice about a destination waits in the item of that destination until it is sent.

mod destinations;

use std::sync::Arc;

pub(crate) use self::destinations::are_wanted;
use crate::sending::Sending;
use crate::table::SharedTable;

/// Composes and sends notices.
#[derive(Debug)]
pub(crate) struct Notices<P> {
    pub(crate) table: Arc<SharedTable<P>>,
    pub(crate) sending: Arc<Sending<P>>,
}
