//! The goals: each is a ratio, a difference or a bound of numbers from one run of the bench.

use crate::contenders::{DEADLETTER, DISPATCH, FLOOR, NODE, PUT_LOOP, PYTHON};
use crate::events::Topic;
use crate::measure::Run;
use crate::results::{Results, Scenario};

/// A goal and what was measured.
pub(crate) struct Goal {
    /// What is compared.
    pub(crate) what: &'static str,
    bound: Bound,
    unit: &'static str,
    /// `None` where a contender did not run.
    measured: Option<f64>,
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    /// The bound, as text.
    pub(crate) fn bound(&self) -> String {
        match self.bound {
            Bound::AtMost(most) => format!("at most {most}{}", self.unit),
            Bound::AtLeast(least) => format!("at least {least}{}", self.unit),
        }
    }

    /// The measured value, as text.
    pub(crate) fn measured(&self) -> String {
        self.measured.map_or_else(
            || "not measured".to_owned(),
            |measured| format!("{measured:.2}{}", self.unit),
        )
    }

    /// Whether it is met, and by how much it is missed.
    pub(crate) fn verdict(&self) -> String {
        match (self.bound, self.measured) {
            (_, None) => "–".to_owned(),
            (Bound::AtMost(most), Some(measured)) if measured <= most => "met".to_owned(),
            (Bound::AtLeast(least), Some(measured)) if measured >= least => "met".to_owned(),
            (Bound::AtMost(of) | Bound::AtLeast(of), Some(measured)) => {
                format!("**missed by {:.2}{}**", (measured - of).abs(), self.unit)
            }
        }
    }
}

/// Every goal.
pub(crate) fn goals(results: &Results) -> Vec<Goal> {
    let cpu = |name| results.median(name, Scenario::Accepted(10), Run::cpu_us_per_event);
    let memory = |scenario| results.median(DISPATCH, scenario, Run::peak_mib);
    let over_floor = ratio(cpu(DISPATCH), cpu(FLOOR));
    let node = ratio(cpu(NODE), cpu(DISPATCH));
    let python = ratio(cpu(PYTHON), cpu(DISPATCH));
    let over_put_loop = ratio(cpu(DEADLETTER), cpu(PUT_LOOP));
    let starts = results.start_ms(DISPATCH).zip(results.start_ms(FLOOR));
    let later_start = starts.map(|(ours, floor)| ours - floor);
    let hundred = memory(Scenario::Accepted(100));
    let requests = results.median(DISPATCH, Scenario::Refused, Run::sqs_requests_per_message);
    let storage = results.median(DISPATCH, Scenario::Accepted(10), Run::storage_requests);
    let six_attempts = memory(Scenario::Many(Topic::RefusedSixTimes));
    let growth = ratio(six_attempts, memory(Scenario::Many(Topic::Refused)));
    let goal = |what, bound, unit, measured| Goal { what, bound, unit, measured };
    let (most, least) = (Bound::AtMost, Bound::AtLeast);
    vec![
        goal("CPU per event at batch 10, dispatch ÷ floor", most(1.5), "×", over_floor),
        goal("CPU per event at batch 10, Node ÷ dispatch", least(12.0), "×", node),
        goal("CPU per event at batch 10, Python ÷ dispatch", least(25.0), "×", python),
        goal("start to first `/next`, dispatch − floor", most(8.0), " ms", later_start),
        goal("peak memory of dispatch at batch 100", most(20.0), " MiB", hundred),
        goal(
            "SQS requests per re-enqueued event, all ten of a batch refused",
            most(0.2),
            "",
            requests,
        ),
        goal("requests to storage while all destinations are healthy", most(0.0), "", storage),
        goal(
            "CPU per event at batch 10, deadletter ÷ put_object loop",
            most(2.0),
            "×",
            over_put_loop,
        ),
        goal(
            "peak memory of 1,000 records, six attempts each ÷ one attempt each",
            most(1.1),
            "×",
            growth,
        ),
    ]
}

fn ratio(of: Option<f64>, to: Option<f64>) -> Option<f64> {
    of.zip(to).map(|(of, to)| of / to)
}
