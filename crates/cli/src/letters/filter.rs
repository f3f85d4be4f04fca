//! Which letters are meant. Pure.
//!
//! Separate because every verb asks the same question, and because part of the answer needs no
//! blob: names and times say which folders are worth looking into.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::subscription::name::segment;
use delivery::time::duration;
use delivery::time::duration::HOUR_MS;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// A delivery lies under the hour its last attempt was due; it is found by its decision if that
/// came no later than this.
const DECIDED_LATE_MS: u64 = HOUR_MS;

/// Which letters are meant; of values of one kind any, of several kinds all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) namespace: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) subscription: Option<String>,
    pub(crate) since_ms: Option<u64>,
    pub(crate) until_ms: Option<u64>,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) statuses: Vec<Statuses>,
    pub(crate) types: Vec<Pattern>,
    pub(crate) sources: Vec<Pattern>,
    pub(crate) ids: Vec<Pattern>,
    pub(crate) destinations: Vec<Pattern>,
}

impl Filter {
    /// Whether this letter is meant.
    pub(crate) fn takes(&self, letter: &StoredDeadLetter) -> bool {
        let name = &letter.subscription;
        let named = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == name)
        };
        let any = |patterns: &[Pattern], text: Option<&str>| {
            patterns.is_empty()
                || text.is_some_and(|text| patterns.iter().any(|pattern| pattern.takes(text)))
        };
        let id = letter.id.to_string();
        named(&self.namespace, &name.topic.namespace)
            && named(&self.topic, &name.topic.topic)
            && named(&self.subscription, &name.name)
            && self.takes_moment(letter)
            && self.takes_end(letter)
            && any(&self.types, letter.event_type.as_deref())
            && any(&self.sources, letter.source.as_deref())
            && (any(&self.ids, letter.event_id.as_deref()) || any(&self.ids, Some(&id)))
            && any(&self.destinations, letter.destination.as_deref())
    }

    fn takes_moment(&self, letter: &StoredDeadLetter) -> bool {
        let Some(at_ms) = decided_ms(letter) else {
            return self.since_ms.is_none() && self.until_ms.is_none();
        };
        self.since_ms.is_none_or(|since_ms| at_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| at_ms < until_ms)
    }

    fn takes_end(&self, letter: &StoredDeadLetter) -> bool {
        let reason = || self.reasons.iter().any(|reason| reason.to_string() == letter.reason);
        let outcome =
            || self.outcomes.iter().any(|of| Some(of.as_str()) == letter.outcome.as_deref());
        let status = || {
            letter
                .status
                .is_some_and(|status| self.statuses.iter().any(|of| of.0.contains(&status)))
        };
        (self.reasons.is_empty() || reason())
            && (self.outcomes.is_empty() || outcome())
            && (self.statuses.is_empty() || status())
    }

    /// Whether a folder of these moments may hold a letter that is meant.
    pub(crate) fn looks_into(&self, moments: &Range<u64>) -> bool {
        let since = self
            .since_ms
            .is_none_or(|since_ms| moments.end.saturating_add(DECIDED_LATE_MS) > since_ms);
        since && self.until_ms.is_none_or(|until_ms| moments.start < until_ms)
    }

    /// The one name that the folders of this depth may have, as a segment of a key: namespace,
    /// topic, subscription.
    pub(crate) fn segment_at(&self, depth: usize) -> Option<String> {
        let named = [&self.namespace, &self.topic, &self.subscription];
        named.get(depth).and_then(|name| name.as_deref()).map(|name| segment(name).into_owned())
    }

    /// Whether blobs have to be read to know which letters are meant.
    pub(crate) fn needs_content(&self) -> bool {
        let texts = [&self.types, &self.sources, &self.ids, &self.destinations];
        let times = self.since_ms.is_some() || self.until_ms.is_some();
        let ends =
            !(self.reasons.is_empty() && self.outcomes.is_empty() && self.statuses.is_empty());
        times || ends || texts.iter().any(|patterns| !patterns.is_empty())
    }
}

/// When a delivery ended, as far as its blob tells: at the end of its last attempt, else at
/// publication.
pub(crate) fn decided_ms(letter: &StoredDeadLetter) -> Option<u64> {
    let end_of_last =
        letter.history.last().map(|attempt| attempt.at_ms.saturating_add(attempt.duration_ms));
    end_of_last.or(letter.last_attempt_ms).or(letter.published_ms)
}

/// A status, or a class of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(Range<u16>);

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\" is no status: 503, or 5xx for all of its kind, is expected");
        let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
        let range = match text.strip_suffix("xx") {
            Some(class) => {
                number(class)?.checked_mul(100).map(|first| first..first.saturating_add(100))
            }
            None => Some(number(text)?).map(|status| status..status.saturating_add(1)),
        };
        range.filter(|range| range.start >= 100 && range.end <= 1_000).map(Self).ok_or_else(wrong)
    }
}

/// A text in which `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl FromStr for Pattern {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    fn takes(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

/// A reason by its name; an unknown one is told which there are.
pub(crate) fn reason(text: &str) -> Result<Reason, String> {
    text.parse().map_err(|problem| {
        let names: Vec<String> = Reason::NAMED.iter().map(ToString::to_string).collect();
        format!("{problem}; there are {}, UndeliverableDueToHttpStatus<code>", names.join(", "))
    })
}

/// An outcome by its name; an unknown one is told which there are.
pub(crate) fn outcome(text: &str) -> Result<Outcome, String> {
    text.parse().map_err(|problem| {
        format!("{problem}; there are {}", Outcome::ALL.map(Outcome::as_str).join(", "))
    })
}

/// A moment: RFC 3339, a date, or how long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(u64),
    Ago(u64),
}

impl Moment {
    /// In milliseconds, as seen from now.
    pub(crate) fn ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('P') {
            return duration::parse_ms(text).map(Self::Ago).map_err(|problem| problem.to_string());
        }
        let ms = |at: jiff::Timestamp| u64::try_from(at.as_millisecond()).ok();
        let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).ok().and_then(|at| ms(at.timestamp()));
        let at = match text.parse::<jiff::Timestamp>() {
            Ok(at) => ms(at),
            // A time of day without an offset could be anybody's; a date alone is a day in UTC,
            // like the folders.
            Err(_) if text.len() == "2026-11-20".len() => {
                text.parse::<Date>().ok().and_then(|day| utc(day.at(0, 0, 0, 0)))
            }
            Err(_) => None,
        };
        at.map(Self::At).ok_or_else(|| {
            format!(
                "\"{text}\" is no moment: 2026-11-20T07:00:00Z, the day 2026-11-20 (UTC), or how long ago, \
                 as in PT1H or P2D, is expected"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::letter;
    use super::*;

    fn patterns(text: &str) -> Vec<Pattern> {
        text.parse().map(|pattern| vec![pattern]).unwrap()
    }

    #[test]
    fn of_one_kind_any_value_counts_and_of_several_kinds_all() {
        let letter = letter(1);
        let all = Filter::default();
        assert!(all.takes(&letter) && !all.needs_content());
        let busy = Filter { outcomes: vec![Outcome::TimedOut, Outcome::Busy], ..Filter::default() };
        assert!(busy.takes(&letter) && busy.needs_content());
        assert!(!Filter { statuses: vec!["4xx".parse().unwrap()], ..busy.clone() }.takes(&letter));
        assert!(
            Filter { statuses: vec!["404".parse().unwrap(), "5xx".parse().unwrap()], ..busy }
                .takes(&letter)
        );
        for (ids, taken) in [
            ("order-1", true),
            ("order-2", false),
            ("*-0000-*", true),
            ("order-*", true),
            ("*", true),
        ] {
            assert_eq!(
                Filter { ids: patterns(ids), ..Filter::default() }.takes(&letter),
                taken,
                "{ids}"
            );
        }
        assert!(!Filter { reasons: vec![Reason::ReplyLoop], ..Filter::default() }.takes(&letter));
        assert!(!Filter { topic: Some("other".to_owned()), ..Filter::default() }.takes(&letter));
        assert!(!Filter { types: patterns("order.paid"), ..Filter::default() }.takes(&letter));
        assert!(
            Filter { destinations: patterns("https://*.example.com/*"), ..Filter::default() }
                .takes(&letter)
        );
    }

    #[test]
    fn since_is_inclusive_until_is_not_and_folders_are_looked_into_an_hour_longer() {
        let letter = letter(1);
        let at_ms = decided_ms(&letter).unwrap();
        let since = |ms| Filter { since_ms: Some(ms), ..Filter::default() };
        let until = |ms| Filter { until_ms: Some(ms), ..Filter::default() };
        assert!(since(at_ms).takes(&letter) && !since(at_ms + 1).takes(&letter));
        assert!(!until(at_ms).takes(&letter) && until(at_ms + 1).takes(&letter));
        let hour = 10 * HOUR_MS..11 * HOUR_MS;
        assert!(
            since(12 * HOUR_MS - 1).looks_into(&hour) && !since(12 * HOUR_MS).looks_into(&hour)
        );
        assert!(
            !until(10 * HOUR_MS).looks_into(&hour) && until(10 * HOUR_MS + 1).looks_into(&hour)
        );
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, taken) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(patterns(pattern)[0].takes(text), taken, "{pattern} {text}");
        }
    }

    #[test]
    fn moments_statuses_and_words_say_what_would_be_right() {
        let day = Moment::At(1_795_132_800_000);
        assert_eq!("2026-11-20".parse(), Ok(day));
        assert_eq!("2026-11-20T00:00:00Z".parse(), Ok(day));
        assert_eq!("2026-11-20T02:00:00+02:00".parse(), Ok(day));
        assert_eq!("PT1H".parse::<Moment>().unwrap().ms(2 * HOUR_MS), HOUR_MS);
        for text in ["yesterday", "2026-11-20T00:00:00", "2026-13-01", "1h", "P1M"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        for text in ["", "99", "1000", "xx", "10xx", "5x", "-1", "65535xx"] {
            assert!(text.parse::<Statuses>().unwrap_err().contains("5xx"), "{text}");
        }
        assert!(
            reason("Nothing")
                .unwrap_err()
                .contains("MaxDeliveryAttemptsExceeded, TimeToLiveExceeded")
        );
        assert!(outcome("busy").unwrap_err().contains("TimedOut, Busy"));
    }
}
