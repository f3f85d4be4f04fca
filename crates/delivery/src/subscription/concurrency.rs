//! [`Concurrency`]: the maximum number of requests in flight to a destination.
//!
//! This module is separate because the limit has two scopes. A number in a document applies to all
//! running functions together; the default applies to each of them.

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind};
use crate::document::reader::Cursor;
use crate::document::record::Shown;

/// A limit on the number of requests in flight to a destination, and its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Maximum number of requests in flight to the destination.
    pub most: u32,
    /// True if all running functions share the limit; false if each of them has this limit.
    pub is_shared: bool,
}

impl Concurrency {
    /// The limit if no document states one: 50 requests for each running function.
    pub const DEFAULT: Self = Self::of_each(50);

    /// Returns a limit that applies to each running function separately.
    #[must_use]
    pub const fn of_each(most: u32) -> Self {
        Self { most, is_shared: false }
    }

    /// Returns a limit that applies to all running functions together.
    #[must_use]
    pub const fn of_all(most: u32) -> Self {
        Self { most, is_shared: true }
    }

    /// Returns the limit if all running functions share it; otherwise `None`.
    #[must_use]
    pub fn shared(self) -> Option<u32> {
        self.is_shared.then_some(self.most)
    }
}

/// The field type of limits in documents. All running functions share such a limit.
pub struct Concurrencies;

/// Allowed values of the limit in documents.
const STATED: Integer = Integer(1..=1_000);

impl Kind for Concurrencies {
    type Value = Concurrency;

    fn read(&self, at: &Cursor<'_>) -> Option<Concurrency> {
        STATED.read(at).map(Concurrency::of_all)
    }

    fn write(&self, value: &Concurrency) -> Json {
        json!(value.shared())
    }

    fn schema(&self) -> Json {
        STATED.schema()
    }

    fn show(&self, path: String, value: &Concurrency, shown: &mut Vec<Shown>) {
        let scope =
            if value.is_shared { "for all functions together" } else { "for each function" };
        let text = format!("{}, {scope}", value.most);
        shown.push(Shown { path, value: json!(value.most), text });
    }
}
