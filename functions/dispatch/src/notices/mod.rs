//! Notices: events that tell the subscribers of one topic about destinations that changed, and about dead letters by minute
//! and cause.
//!
//! A notice about a destination waits in the item of that destination until it is sent.

mod destinations;
mod minutes;

use std::sync::Arc;

pub(crate) use self::destinations::are_wanted;
pub(crate) use self::minutes::announced;
use crate::sending::Sending;
use crate::table::SharedTable;

/// Composes and sends notices.
#[derive(Debug)]
pub(crate) struct Notices<P> {
    pub(crate) ports: Arc<P>,
    pub(crate) table: Arc<SharedTable<P>>,
    pub(crate) sending: Arc<Sending<P>>,
}
