//! [`Budget`]: the fuel of one request, and [`Bounded`]: texts that are built within the budget.
//!
//! This module is separate because fuel limits the memory of an evaluation. The fuel for a byte is
//! charged before the byte is allocated. The items of lists cost fuel too.

use std::cell::Cell;

use super::error::Fault;
use super::limits::FUEL_MAX;

/// Fuel for the evaluation of one expression.
pub(super) const STEP: u64 = 64;
/// Fuel for each item of a list that an expression builds, and for each iteration of a loop.
pub(super) const ITEM: u64 = 128;
/// Fuel for reading a byte of the event or the template.
pub(super) const READ: u64 = 1;
/// Fuel for a byte of a name that is looked up in an object. It is higher than for reading, because
/// the name is compared with several names.
pub(super) const LOOKUP: u64 = 8;
/// Fuel for a byte of the output.
pub(super) const WRITTEN: u64 = 2;
/// Fuel for a byte of a text that an expression builds.
pub(super) const BUILT: u64 = 4;

/// The remaining fuel, which all templates of one request share. With fuel of its own for each, a
/// request with 60 templates (parameters and headers) could do 60 times the work.
pub(super) struct Budget {
    remaining: Cell<u64>,
}

impl Budget {
    /// Returns the full fuel of one request.
    pub(super) fn new() -> Self {
        Self { remaining: Cell::new(FUEL_MAX) }
    }

    /// Charges the fuel for `count` units of work. Call this function before doing the work.
    ///
    /// # Errors
    ///
    /// Fails if less fuel remains than the work costs. Afterwards, no fuel remains.
    pub(super) fn spend(&self, count: usize, cost: u64) -> Result<(), Fault> {
        let price = u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(cost);
        let remaining = self.remaining.get().checked_sub(price);
        self.remaining.set(remaining.unwrap_or(0));
        remaining.map(|_| ()).ok_or_else(|| {
            Fault::new(
                "the template exceeds its computation limit; use smaller values, fewer loops or \
                 fewer expressions",
            )
        })
    }

    /// Returns the fuel that was used so far.
    #[cfg(test)]
    pub(super) fn spent(&self) -> u64 {
        FUEL_MAX - self.remaining.get()
    }
}

/// A text with a maximum length.
pub(super) struct Bounded<'b> {
    text: String,
    max_bytes: usize,
    cost: u64,
    budget: &'b Budget,
}

impl<'b> Bounded<'b> {
    /// Returns an empty text whose bytes cost `cost` each.
    pub(super) fn new(max_bytes: usize, cost: u64, budget: &'b Budget) -> Self {
        Self { text: String::new(), max_bytes, cost, budget }
    }

    /// Appends a text.
    ///
    /// # Errors
    /// The text would exceed its maximum length, or the fuel is used up.
    pub(super) fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.pay(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Checks the maximum length and charges the fuel for bytes, before they are appended.
    fn pay(&self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.max_bytes - self.text.len() {
            return Err(Fault::new(format!("the result is longer than {} bytes", self.max_bytes)));
        }
        self.budget.spend(bytes, self.cost)
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Returns the budget that pays for the text.
    pub(super) fn budget(&self) -> &'b Budget {
        self.budget
    }
}
