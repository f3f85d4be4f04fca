//! Provides success rates and durations of attempts, recorded by this process or read from
//! CloudWatch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use adapters::machine::Machine;
use delivery::ports::Clock as _;

#[cfg(feature = "aws")]
use super::cloudwatch::CloudWatch;
use crate::console::live::traffic::{Recorded, Traffic};

/// The source of success rates and durations.
pub(crate) enum RateSource {
    /// The attempts that `lastmile dev` has recorded since it started.
    Recorded(Arc<Mutex<Recorded>>),
    /// The CloudWatch metrics of a stack.
    #[cfg(feature = "aws")]
    CloudWatch(CloudWatch),
    /// No statistics are available.
    Nothing,
}

/// The statistics of attempts in a time range, by subscription.
#[derive(Debug, Default, Clone)]
pub(in crate::console) struct Rates {
    /// True if every attempt was measured, so that a subscription without statistics had no
    /// attempt.
    is_complete: bool,
    /// The statistics by the full name of the subscription.
    pub(in crate::console) subscriptions: BTreeMap<String, Traffic>,
    /// An explanation of which statistics are missing.
    pub(in crate::console) note: Option<String>,
}

impl Rates {
    /// Creates statistics that may be incomplete: a subscription without statistics was not
    /// measured.
    #[cfg(feature = "aws")]
    pub(super) fn measured(subscriptions: BTreeMap<String, Traffic>, note: Option<String>) -> Self {
        Self { is_complete: false, subscriptions, note }
    }

    /// Returns the sum of the attempts of these subscriptions; `None` if they were not measured.
    pub(in crate::console) fn traffic<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Option<Traffic> {
        let mut all = self.is_complete.then(Traffic::default);
        for traffic in names.into_iter().filter_map(|name| self.subscriptions.get(name)) {
            all.get_or_insert_default().add(traffic);
        }
        all
    }
}

impl RateSource {
    /// Reads the statistics of these subscriptions for the last `range_ms` milliseconds.
    #[cfg_attr(
        not(feature = "aws"),
        expect(clippy::unused_async, reason = "only CloudWatch needs requests")
    )]
    pub(in crate::console) async fn last(&self, range_ms: u64, names: &[String]) -> Rates {
        let now_ms = Machine.now_ms();
        match self {
            Self::Recorded(recorded) => {
                let recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                let subscriptions = recorded.since(now_ms.saturating_sub(range_ms));
                Rates { is_complete: true, subscriptions, note: None }
            }
            #[cfg(feature = "aws")]
            Self::CloudWatch(cloudwatch) => cloudwatch.last(range_ms, names, now_ms).await,
            Self::Nothing => {
                let _ = names;
                let note = "Success rates require --stack, because they come from the metrics of a \
                            stack.";
                Rates { note: Some(note.to_owned()), ..Rates::default() }
            }
        }
    }
}
