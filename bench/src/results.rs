//! All runs, and their medians over the rounds.

use std::time::Duration;

use crate::events::Topic;
use crate::measure::Run;

/// The work of a contender in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Batches of this many records, all of which are delivered or stored.
    Accepted(usize),
    /// Batches of ten records. The destination refuses each, and dispatch sends it to the retry
    /// queue.
    Refused,
    /// One invocation with many records.
    Many(Topic),
}

/// Every run of every contender.
#[derive(Debug, Default)]
pub(crate) struct Results {
    runs: Vec<(&'static str, Scenario, Run)>,
    /// The contenders whose instructions were counted, with their instructions per event.
    pub(crate) instructions: Vec<(&'static str, u64)>,
}

impl Results {
    pub(crate) fn add(&mut self, contender: &'static str, scenario: Scenario, run: Run) {
        self.runs.push((contender, scenario, run));
    }

    /// Returns the median of `number` over a contender's runs of a scenario; `None` if there are no
    /// runs.
    pub(crate) fn median(
        &self,
        contender: &str,
        scenario: Scenario,
        number: impl Fn(&Run) -> f64,
    ) -> Option<f64> {
        median(&self.numbers(contender, |case| case == scenario, number))
    }

    /// Returns a contender's instructions per event; `None` if they were not counted.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn instructions_of(&self, contender: &str) -> Option<f64> {
        let counted = self.instructions.iter().find(|(name, _)| *name == contender);
        counted.map(|(_, per_event)| *per_event as f64)
    }

    /// Returns the median duration of a contender's starts, over the runs of all scenarios; `None`
    /// if there are no runs.
    pub(crate) fn start_ms(&self, contender: &str) -> Option<f64> {
        median(&self.numbers(contender, |_| true, |run| ms(run.start)))
    }

    /// Returns the duration of a contender's shortest start; `None` if there are no runs.
    pub(crate) fn shortest_start_ms(&self, contender: &str) -> Option<f64> {
        self.numbers(contender, |_| true, |run| ms(run.start)).first().copied()
    }

    /// Applies `number` to a contender's runs of the matching scenarios. Returns the results in
    /// ascending order.
    fn numbers(
        &self,
        contender: &str,
        scenario: impl Fn(Scenario) -> bool,
        number: impl Fn(&Run) -> f64,
    ) -> Vec<f64> {
        let runs = self.runs.iter().filter(|(name, case, _)| *name == contender && scenario(*case));
        let mut numbers: Vec<f64> = runs.map(|(_, _, run)| number(run)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }
}

/// Returns the median of numbers in ascending order.
fn median(numbers: &[f64]) -> Option<f64> {
    let (low, high) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some(f64::midpoint(numbers[low], numbers[high]))
}

impl Run {
    pub(crate) fn cpu_us_per_event(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count(self.events)
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        count(self.events) / self.elapsed.as_secs_f64()
    }

    pub(crate) fn peak_mib(&self) -> f64 {
        count(self.peak_bytes) / f64::from(1_024 * 1_024)
    }

    pub(crate) fn storage_requests(&self) -> f64 {
        count(self.storage_requests)
    }

    pub(crate) fn sqs_requests_per_message(&self) -> f64 {
        count(self.sqs.requests) / count(self.sqs.messages)
    }
}

/// Converts a duration to milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
