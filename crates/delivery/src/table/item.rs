//! The key of an item.
//!
//! Its first part is the namespace of the subscriptions that the item is about. A policy can
//! therefore grant a role the items of its namespaces. A first part with `@` belongs to items that
//! are about no namespace, because no namespace begins with `@`.

use std::fmt;

/// The primary key of an item in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// Partition key.
    pub partition: String,
    /// Sort key.
    pub sort: String,
}

impl ItemKey {
    /// Creates the key from its parts.
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
