//! Sends notices: events about changed destinations, for the subscribers of one topic.
//!
//! A notice waits in the table item of its destination until it is sent.

mod destinations;

use std::sync::Arc;

pub(crate) use self::destinations::are_wanted;
use crate::sending::Sending;
use crate::table::SharedTable;

#[derive(Debug)]
pub(crate) struct Notices<P> {
    pub(crate) table: Arc<SharedTable<P>>,
    pub(crate) sending: Arc<Sending<P>>,
}
