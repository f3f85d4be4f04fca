//! Reads the states of all dead letters from replay ledgers and dismissals.
//!
//! Separate from [`crate::state`], which is pure.

use std::sync::Arc;

use adapters::machine::Machine;
use delivery::ports::Clock as _;

use crate::dead_letters::DeadLetters;
use crate::filter::Filter;
use crate::state::LetterStates;

impl DeadLetters {
    /// Returns the states of all dead letters of the container.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn states(&self) -> anyhow::Result<LetterStates> {
        let (replayed, dismissals) =
            futures::future::try_join(self.replayed(None), self.dismissals()).await?;
        Ok(LetterStates::new(replayed, dismissals, Machine.now_ms()))
    }

    /// Adds the states of all dead letters to a filter.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn with_states(&self, filter: Filter) -> anyhow::Result<Filter> {
        Ok(Filter { states: Arc::new(self.states().await?), ..filter })
    }
}
