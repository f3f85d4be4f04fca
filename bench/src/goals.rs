//! The goals: upper bounds for numbers from one run of the bench, and for their ratios and
//! differences.

use crate::contenders::{DEADLETTER, DISPATCH, FLOOR, PUT_LOOP};
use crate::events::Topic;
use crate::measure::Run;
use crate::results::{Results, Scenario};

/// A goal and its measured value.
pub(crate) struct Goal {
    /// A description of the compared numbers.
    pub(crate) description: &'static str,
    /// The highest value that meets the goal.
    bound: f64,
    unit: &'static str,
    /// `None` where a contender did not run.
    measured: Option<f64>,
}

impl Goal {
    /// Returns the bound as text, with `at most` and the unit.
    pub(crate) fn bound(&self) -> String {
        format!("at most {}{}", self.bound, self.unit)
    }

    /// Returns the measured value with its unit, or `not measured`.
    pub(crate) fn measured(&self) -> String {
        self.measured.map_or_else(
            || "not measured".to_owned(),
            |measured| format!("{measured:.2}{}", self.unit),
        )
    }

    /// Returns `met`, or the amount by which the goal is missed.
    pub(crate) fn verdict(&self) -> String {
        match self.measured {
            None => "–".to_owned(),
            Some(measured) if measured <= self.bound => "met".to_owned(),
            Some(measured) => format!("**missed by {:.2}{}**", measured - self.bound, self.unit),
        }
    }
}

pub(crate) fn goals(results: &Results) -> Vec<Goal> {
    let cpu_of =
        |name, batch| results.median(name, Scenario::Accepted(batch), Run::cpu_us_per_event);
    let cpu = |name| cpu_of(name, 10);
    let memory = |scenario| results.median(DISPATCH, scenario, Run::peak_mib);
    let over_floor = ratio(cpu(DISPATCH), cpu(FLOOR));
    let over_floor_of_hundred = ratio(cpu_of(DISPATCH, 100), cpu_of(FLOOR, 100));
    let instructions = ratio(results.instructions_of(DISPATCH), results.instructions_of(FLOOR));
    let over_put_loop = ratio(cpu(DEADLETTER), cpu(PUT_LOOP));
    let starts = results.start_ms(DISPATCH).zip(results.start_ms(FLOOR));
    let later_start = starts.map(|(ours, floor)| ours - floor);
    let hundred = memory(Scenario::Accepted(100));
    let requests = results.median(DISPATCH, Scenario::Refused, Run::sqs_requests_per_message);
    let storage = results.median(DISPATCH, Scenario::Accepted(10), Run::storage_requests);
    let six_attempts = memory(Scenario::Many(Topic::RefusedSixTimes));
    let growth = ratio(six_attempts, memory(Scenario::Many(Topic::Refused)));
    let goal = |description, bound, unit, measured| Goal { description, bound, unit, measured };
    vec![
        goal("instructions per event at batch 10, dispatch ÷ floor", 1.25, "×", instructions),
        goal("CPU per event at batch 10, dispatch ÷ floor", 1.25, "×", over_floor),
        goal("CPU per event at batch 100, dispatch ÷ floor", 1.25, "×", over_floor_of_hundred),
        goal("start to first `/next`, dispatch − floor", 6.0, " ms", later_start),
        goal("peak memory of dispatch at batch 100", 16.0, " MiB", hundred),
        goal("SQS requests per re-enqueued event, all ten of a batch refused", 0.2, "", requests),
        goal("requests to storage while all destinations are healthy", 0.0, "", storage),
        goal("CPU per event at batch 10, deadletter ÷ put_object loop", 2.0, "×", over_put_loop),
        goal(
            "peak memory of 1,000 records, six attempts each ÷ one attempt each",
            1.1,
            "×",
            growth,
        ),
    ]
}

fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    numerator.zip(denominator).map(|(numerator, denominator)| numerator / denominator)
}
