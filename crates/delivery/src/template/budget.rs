//! The fuel of one request, and texts that are built within it.
//!
//! Separate because everything that grows grows here: a byte is paid for before it is appended. Evaluation never allocates
//! in another way, except for lists, whose items are paid for as steps.

use std::cell::Cell;

use super::error::Fault;
use super::limits::FUEL_MAX;

/// One expression that is evaluated.
pub(super) const STEP: u64 = 64;
/// An item of a list that is built, or that a loop visits.
pub(super) const ITEM: u64 = 128;
/// A byte of the event or the template that is read.
pub(super) const READ: u64 = 1;
/// A byte of a name that is looked up in an object: it is compared with several.
pub(super) const LOOKUP: u64 = 8;
/// A byte of the output.
pub(super) const WRITTEN: u64 = 2;
/// A byte of a text that an expression builds.
pub(super) const BUILT: u64 = 4;

/// The fuel that is left; shared by all templates of one request.
pub(super) struct Budget {
    remaining: Cell<u64>,
}

impl Budget {
    /// The fuel of one request.
    pub(super) fn new() -> Self {
        Self { remaining: Cell::new(FUEL_MAX) }
    }

    /// Pays for `count` units of work before they are done.
    ///
    /// # Errors
    /// The fuel is used up. Every later call fails too.
    pub(super) fn spend(&self, count: usize, cost: u64) -> Result<(), Fault> {
        let price = u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(cost);
        let remaining = self.remaining.get().checked_sub(price);
        self.remaining.set(remaining.unwrap_or(0));
        remaining.map(|_| ()).ok_or_else(|| {
            Fault::new(
                "it does too much work; use smaller values, fewer loops or fewer expressions",
            )
        })
    }

    /// The fuel that was used.
    #[cfg(test)]
    pub(super) fn spent(&self) -> u64 {
        FUEL_MAX - self.remaining.get()
    }
}

/// A text that cannot become longer than its limit.
pub(super) struct Bounded<'b> {
    text: String,
    max_bytes: usize,
    cost: u64,
    budget: &'b Budget,
}

impl<'b> Bounded<'b> {
    /// An empty text; each byte costs `cost`.
    pub(super) fn new(max_bytes: usize, cost: u64, budget: &'b Budget) -> Self {
        Self { text: String::new(), max_bytes, cost, budget }
    }

    /// Appends a text.
    ///
    /// # Errors
    /// It would become too long, or the fuel is used up.
    pub(super) fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.pay(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Pays for bytes that are appended afterwards.
    fn pay(&self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.max_bytes - self.text.len() {
            return Err(Fault::new(format!("the result is longer than {} bytes", self.max_bytes)));
        }
        self.budget.spend(bytes, self.cost)
    }

    /// The text so far.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// The budget that pays for it.
    pub(super) fn budget(&self) -> &'b Budget {
        self.budget
    }
}
