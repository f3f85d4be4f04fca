//! [`Concurrency`]: the maximum number of requests in flight to a destination.
//!
//! This module is separate because the limit has two scopes. A number in a document applies to all
//! running functions together; the default applies to each of them.

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind};
use crate::document::reader::Cursor;
use crate::document::record::Shown;

/// A limit on requests in flight, and its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Maximum number of requests in flight.
    pub most: u32,
    /// True if all running functions share the limit; false if each has its own.
    pub is_shared: bool,
}

impl Concurrency {
    /// Applies if no document states a limit: 50 for each running function.
    pub const DEFAULT: Self = Self::of_each(50);

    /// Returns a limit for each running function.
    #[must_use]
    pub const fn of_each(most: u32) -> Self {
        Self { most, is_shared: false }
    }

    /// Returns a limit that all running functions share.
    #[must_use]
    pub const fn of_all(most: u32) -> Self {
        Self { most, is_shared: true }
    }

    /// Returns the limit if all running functions share it.
    #[must_use]
    pub fn shared(self) -> Option<u32> {
        self.is_shared.then_some(self.most)
    }
}

/// The kind of a limit in a document. Such a limit is always shared by all running functions.
pub struct Concurrencies;

/// The range that a document may state.
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
        let of = if value.is_shared { "of all functions together" } else { "of each function" };
        let text = format!("{}, {of}", value.most);
        shown.push(Shown { path, value: json!(value.most), text });
    }
}
