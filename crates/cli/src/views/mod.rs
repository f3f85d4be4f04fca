//! Formats and prints results of operations as text for people.

pub(crate) mod changes;
pub(crate) mod dev_view;
pub(crate) mod log_view;
pub(crate) mod mapped_addresses;
pub(crate) mod repeats;
pub(crate) mod replay_end;
pub(crate) mod unreadable_ledger;
