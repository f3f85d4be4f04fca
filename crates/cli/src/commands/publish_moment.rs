//! Adds the time for which `publish` schedules events: `--in` and `--at` become the attribute
//! `deliverat`.
//!
//! Separate from sending, because an event with an invalid time is refused before anything is sent.

use delivery::delivery::check_moment;
use delivery::event::{DELIVER_AT, Element, Event, Input, decode_one};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::brief::parse_ms;
use delivery::time::duration::DAY_MS;
use delivery::time::moment::{date_time, rfc3339};

use crate::terminal::usage::usage_error;

#[derive(Debug, clap::Args)]
pub(crate) struct MomentArgs {
    /// Deliver the events after this time, such as 10m or PT10M. Sets the CloudEvents attribute
    /// deliverat
    #[arg(long = "in", value_name = "DURATION", value_parser = parse_ms, conflicts_with = "at")]
    in_ms: Option<u64>,
    /// Deliver the events at this time, such as 2026-12-01T09:00:00Z. Sets the CloudEvents
    /// attribute deliverat
    #[arg(long = "at", value_name = "TIME", value_parser = at)]
    at: Option<Moment>,
}

/// A scheduled time, and the text that the user entered for it.
#[derive(Debug, Clone)]
struct Moment {
    at_ms: u64,
    text: String,
}

fn at(text: &str) -> Result<Moment, String> {
    let expected = || {
        format!(
            "{text:?} is not an RFC 3339 date-time: expected a value such as 2026-12-01T09:00:00Z"
        )
    };
    let at_ms = date_time(text).ok_or_else(expected)?;
    Ok(Moment { at_ms, text: text.to_owned() })
}

/// The time of publishing, and the time for which events are scheduled. If no time is scheduled,
/// events are not changed.
#[derive(Debug)]
pub(crate) struct PublishMoment {
    now_ms: u64,
    at_ms: Option<u64>,
}

impl MomentArgs {
    /// Computes the scheduled time from the options and the current time.
    ///
    /// # Errors
    /// A usage error if the time is 14 or more days in the future.
    pub(crate) fn read(&self, now_ms: u64) -> anyhow::Result<PublishMoment> {
        let after_wait = self.in_ms.map(|in_ms| {
            let at_ms = now_ms.saturating_add(in_ms);
            Moment { at_ms, text: rfc3339(at_ms) }
        });
        let moment = self.at.clone().or(after_wait);
        let latest_ms = now_ms.saturating_add(LIFETIME_MAX_MS);
        match moment {
            Some(Moment { at_ms, text }) if at_ms >= latest_ms => {
                // A time after the year 9999 is stored as the maximum, which cannot be formatted.
                let first_ms = Some(at_ms).filter(|at_ms| *at_ms < u64::MAX);
                let first_ms = first_ms.map(|at_ms| rfc3339(at_ms - LIFETIME_MAX_MS));
                let advice = first_ms.map(|time| format!("; publish the event after {time}"));
                Err(usage_error(format!(
                    "{text} is too late: the delivery of an event must be within {} days{}",
                    LIFETIME_MAX_MS / DAY_MS,
                    advice.unwrap_or_default()
                )))
            }
            moment => Ok(PublishMoment { now_ms, at_ms: moment.map(|moment| moment.at_ms) }),
        }
    }
}

impl PublishMoment {
    /// Adds the scheduled time to an event.
    ///
    /// # Errors
    /// If the event's format cannot contain a scheduled time, or the event already contains an
    /// invalid one.
    pub(crate) fn schedule(&self, event: Event) -> Result<Event, String> {
        let Some(at_ms) = self.at_ms else {
            return check_moment(&event, self.now_ms)
                .map(|()| event)
                .map_err(|why| why.to_string());
        };
        let text = event.text_with_deliver_at(at_ms).ok_or_else(|| {
            format!(
                "the event is not a CloudEvent, and only CloudEvents have {DELIVER_AT}: remove \
                 --in and --at"
            )
        })?;
        match decode_one(&text.into(), Input::CloudEvents) {
            Element::Event(event) => Ok(event),
            Element::Malformed { why, .. } => Err(why.to_string()),
        }
    }
}
