//! The key of an item.
//!
//! The first part is the namespace of the subscriptions that an item is about, so that a policy can give a role the items of
//! its namespaces. Namespaces do not begin with `@`: such a first part is of items that are about no namespace.

use std::fmt;

/// The key of an item of the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// Its partition key.
    pub partition: String,
    /// Its sort key.
    pub sort: String,
}

impl ItemKey {
    /// The key of these parts.
    #[must_use]
    pub fn new(partition: &str, sort: String) -> Self {
        Self { partition: partition.to_owned(), sort }
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.partition, self.sort)
    }
}
