//! [`ItemKey`]: the primary key of an item in the table.
//!
//! The partition key is the namespace of the subscriptions that the item is about. An IAM policy
//! can therefore limit a role to the items of certain namespaces. A partition key that begins with
//! `@` is for items outside of all namespaces, because no namespace begins with `@`.

use std::fmt;

/// The primary key of an item in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The partition key: a namespace, or a name that begins with `@`.
    pub partition: String,
    /// The sort key, unique within the partition.
    pub sort: String,
}

impl ItemKey {
    /// Creates a key from its partition key and its sort key.
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
