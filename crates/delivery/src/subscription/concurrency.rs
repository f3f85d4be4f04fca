//! [`Concurrency`]: how many requests of a destination may be in flight at once.
//!
//! Separate because the number means one thing if a document states it, and another if none does.

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind};
use crate::document::reader::Cursor;
use crate::document::record::Shown;

/// How many requests may be in flight at once, and of whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// The number.
    pub most: u32,
    /// It is the number of all running functions together, and not of each.
    pub is_shared: bool,
}

impl Concurrency {
    /// The number if no document states one.
    pub const DEFAULT: Self = Self::of_each(50);

    /// So many of each running function.
    #[must_use]
    pub const fn of_each(most: u32) -> Self {
        Self { most, is_shared: false }
    }

    /// So many of all running functions together.
    #[must_use]
    pub const fn of_all(most: u32) -> Self {
        Self { most, is_shared: true }
    }

    /// The number that all running functions share; `None` if each has its own.
    #[must_use]
    pub fn shared(self) -> Option<u32> {
        self.is_shared.then_some(self.most)
    }
}

/// A number of requests that a document states: it is that of all running functions together.
pub struct Concurrencies;

/// The numbers that a document may state.
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
