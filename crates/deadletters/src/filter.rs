//! Selects dead letters. Pure.
//!
//! Separate because every command filters in the same way. Only the names, times and states in a
//! filter reduce the number of folders and blobs that are read.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use delivery::deadletter::stored::{StoredDeadLetter, id_of_key};
use delivery::delivery::outcome::OutcomeName;
use delivery::delivery::reason::Reason;
use delivery::subscription::name::segment;
use delivery::time::brief;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use uuid::Uuid;

use crate::cause::{CauseId, CausePrefix, cause_id};
use crate::facts::{RESPONSE_MAX_CHARS, decided_ms};
use crate::key::NAME_FOLDERS;
use crate::state::{LetterState, LetterStates, WantedState};

/// A filter for dead letters. A dead letter matches if every field that has values matches. Several
/// values of one field are alternatives.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The name of the namespace; `None` selects all.
    pub namespace: Option<String>,
    /// The name of the topic, without its namespace; `None` selects all.
    pub topic: Option<String>,
    /// The name of the subscription, without its topic; `None` selects all.
    pub subscription: Option<String>,
    /// Start of the time range, inclusive, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// End of the time range, exclusive, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// The reasons of dead letters to select; empty for all.
    pub reasons: Vec<Reason>,
    /// Outcomes to select. The last attempt must have one of these outcomes; empty for all.
    pub outcomes: Vec<OutcomeName>,
    /// Ranges of HTTP statuses to select. The status of the last attempt must be in one of these
    /// ranges; empty for all.
    pub statuses: Vec<StatusRange>,
    /// Patterns for the event type. At least one must match; empty for all.
    pub types: Vec<Pattern>,
    /// Patterns for the event source. At least one must match; empty for all.
    pub sources: Vec<Pattern>,
    /// Patterns for the id of the event or of the dead letter. At least one must match; empty for
    /// all.
    pub ids: Vec<Pattern>,
    /// Patterns for the URL of the destination. At least one must match; empty for all.
    pub destinations: Vec<Pattern>,
    /// Prefixes of the ids of causes to select; empty for all.
    pub causes: Vec<CausePrefix>,
    /// A text that must occur in the fields that [`SearchText`] lists.
    pub search: Option<SearchText>,
    /// The states of dead letters to select; empty for all.
    pub wanted_states: Vec<WantedState>,
    /// The states of all dead letters in the container, to which `wanted_states` applies.
    pub states: Arc<LetterStates>,
}

impl Filter {
    /// True if the dead letter satisfies all conditions of this filter.
    #[must_use]
    pub fn matches(&self, letter: &StoredDeadLetter) -> bool {
        self.matches_with(letter, || cause_id(letter))
    }

    /// Matches as [`Self::matches`] does, but gets the cause from the caller. Finding the cause
    /// takes longer than all other comparisons, and the caller may have it already.
    pub(crate) fn matches_with(
        &self,
        letter: &StoredDeadLetter,
        cause: impl FnOnce() -> CauseId,
    ) -> bool {
        let name = &letter.subscription;
        let named = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == name)
        };
        let is_like = |pattern: &Pattern, text: &Option<String>| {
            text.as_deref().is_some_and(|text| pattern.matches(text))
        };
        // The last failure may be that of the dead-letter sink, so the original failure is compared
        // too.
        let failure = letter.failure();
        let outcomes =
            [(letter.outcome.as_deref(), letter.status), (failure.outcome, failure.status)];
        let statuses = [letter.status, failure.status];
        let destinations = [letter.destination.as_deref(), failure.destination];
        self.has_wanted_state(letter.id)
            && named(&self.namespace, &name.topic.namespace)
            && named(&self.topic, &name.topic.topic)
            && named(&self.subscription, &name.name)
            && self.matches_time(letter)
            && any(&self.reasons, |reason| reason.to_string() == letter.reason)
            && any(&self.outcomes, |outcome| {
                outcomes.iter().any(|(word, status)| outcome.is_of(*word, *status))
            })
            && any(&self.statuses, |range| {
                statuses.iter().flatten().any(|status| range.0.contains(status))
            })
            && any(&self.types, |pattern| is_like(pattern, &letter.event_type))
            && any(&self.sources, |pattern| is_like(pattern, &letter.source))
            && any(&self.ids, |pattern| {
                is_like(pattern, &letter.event_id) || pattern.matches(&letter.id.to_string())
            })
            && any(&self.destinations, |pattern| {
                destinations.iter().flatten().any(|destination| pattern.matches(destination))
            })
            && self.search.as_ref().is_none_or(|text| text.matches(letter))
            && (self.causes.is_empty() || self.matches_cause(cause()))
    }

    /// True if the filter selects the current state of this dead letter.
    #[must_use]
    pub fn has_wanted_state(&self, letter: Uuid) -> bool {
        any(&self.wanted_states, |wanted| wanted.is_of(self.states.state(letter)))
    }

    /// True if the filter selects this state.
    #[must_use]
    pub fn wants(&self, state: LetterState) -> bool {
        any(&self.wanted_states, |wanted| wanted.is_of(state))
    }

    /// True if the filter selects every state, so that the ledgers need not be read.
    #[must_use]
    pub fn is_of_any_state(&self) -> bool {
        let states = LetterState::ALL;
        states.iter().all(|state| any(&self.wanted_states, |wanted| wanted.is_of(*state)))
    }

    /// Returns the filter without its condition on the state.
    #[must_use]
    pub fn of_any_state(self) -> Self {
        Self { wanted_states: Vec::new(), ..self }
    }

    /// True if the filter selects the state of the dead letter with this key. The key contains the
    /// id.
    pub(crate) fn has_wanted_key(&self, key: &str) -> bool {
        self.has_wanted_state(id_of_key(key))
    }

    fn matches_cause(&self, id: CauseId) -> bool {
        self.causes.iter().any(|prefix| prefix.is_of(id))
    }

    fn matches_time(&self, letter: &StoredDeadLetter) -> bool {
        let Some(at_ms) = decided_ms(letter) else {
            // A dead letter without any time is not in any range.
            return self.since_ms.is_none() && self.until_ms.is_none();
        };
        self.since_ms.is_none_or(|since_ms| at_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| at_ms < until_ms)
    }

    /// True if a folder with this time range may contain a matching dead letter.
    pub(crate) fn may_match_within(&self, range: &Range<u64>) -> bool {
        self.since_ms.is_none_or(|since_ms| range.end > since_ms)
            && self.until_ms.is_none_or(|until_ms| range.start < until_ms)
    }

    /// Returns the only name that a folder at this depth (namespace, topic, subscription) may have,
    /// encoded as a segment of a key. Returns `None` if every name matches.
    pub(crate) fn segment_at(&self, depth: usize) -> Option<String> {
        let named = [&self.namespace, &self.topic, &self.subscription];
        named.get(depth).and_then(|name| name.as_deref()).map(|name| segment(name).into_owned())
    }

    /// Returns the common prefix of all matching keys, without the prefix of the container. Returns
    /// `None` if the filter needs the content of blobs, or if not every key with this prefix
    /// matches.
    pub(crate) fn key_prefix(&self) -> Option<String> {
        let names: Vec<String> =
            (0..NAME_FOLDERS).map_while(|depth| self.segment_at(depth)).collect();
        let all = (0..NAME_FOLDERS).filter_map(|depth| self.segment_at(depth)).count();
        let is_exact = !self.needs_content() && names.len() == all;
        is_exact.then(|| names.iter().map(|name| format!("{name}/")).collect())
    }

    /// True if the filter needs the content of blobs, not only their keys.
    pub(crate) fn needs_content(&self) -> bool {
        let texts = [&self.types, &self.sources, &self.ids, &self.destinations];
        // Time limits need the content, because a folder covers a whole hour.
        let times = self.since_ms.is_some() || self.until_ms.is_some();
        let results =
            !(self.reasons.is_empty() && self.outcomes.is_empty() && self.statuses.is_empty());
        let is_text = self.search.is_some() || texts.iter().any(|patterns| !patterns.is_empty());
        times || results || is_text || !self.causes.is_empty()
    }
}

/// True if `wanted` is empty, or one of its values matches.
fn any<T>(wanted: &[T], matches: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(matches)
}

/// The range of valid HTTP statuses. <https://www.rfc-editor.org/rfc/rfc9110#name-status-codes>
const STATUSES: Range<u16> = 100..600;

/// HTTP statuses: one such as `503`, a class such as `5xx`, or a range such as `500-504`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRange(Range<u16>);

impl FromStr for StatusRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a status such as 503, a class such as 5xx, or a range such as \
                        500-504";
        let invalid = || format!("\"{text}\" is not a valid status: {expected}");
        let number = |text: &str| text.parse::<u16>().map_err(|_| invalid());
        let range = match (text.strip_suffix("xx"), text.split_once('-')) {
            (Some(class), _) => {
                let first = number(class)?.saturating_mul(100);
                first..first.saturating_add(100)
            }
            (None, Some((first, last))) => number(first)?..number(last)?.saturating_add(1),
            (None, None) => number(text)?..number(text)?.saturating_add(1),
        };
        if !STATUSES.contains(&range.start) || range.end > STATUSES.end {
            let why = "an HTTP status is 100 to 599";
            return Err(format!("\"{text}\" is not a valid status: {why}; {expected}"));
        }
        if range.is_empty() {
            return Err(format!("\"{text}\" is an empty range: {expected}"));
        }
        Ok(Self(range))
    }
}

/// A pattern in which `*` matches any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            // Take the first match, because it leaves the longest text for the rest of the pattern.
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

/// A text to search for. The search covers ids (of the dead letter and of the event), subscription,
/// type, source, destination, reason, detail and the last response. ASCII letters match in any
/// case. The search omits the event's data, because summaries do not contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchText(String);

impl From<&str> for SearchText {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl SearchText {
    fn matches(&self, letter: &StoredDeadLetter) -> bool {
        let texts = [
            letter.event_id.as_deref(),
            letter.event_type.as_deref(),
            letter.source.as_deref(),
            letter.destination.as_deref(),
            Some(letter.reason.as_str()),
            letter.detail.as_deref(),
            letter.last_response.as_deref().map(searched),
        ];
        texts.into_iter().flatten().any(|text| self.is_in(text))
            || self.is_in(&letter.subscription.to_string())
            || self.is_in(&letter.id.to_string())
    }

    fn is_in(&self, text: &str) -> bool {
        let wanted = self.0.as_bytes();
        let mut places = text.as_bytes().windows(wanted.len().max(1));
        wanted.is_empty() || places.any(|place| place.eq_ignore_ascii_case(wanted))
    }
}

/// Returns the part of a response that is searched.
fn searched(response: &str) -> &str {
    let end = response.char_indices().nth(RESPONSE_MAX_CHARS).map(|(end, _)| end);
    end.and_then(|end| response.get(..end)).unwrap_or(response)
}

/// The bound of a time range: an RFC 3339 time, a date, or a duration before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBound {
    /// A point in time, in milliseconds since 1970.
    At(u64),
    /// A duration before now, in milliseconds.
    Ago(u64),
}

impl TimeBound {
    /// Converts the bound to milliseconds since 1970. `now_ms` is the current time.
    #[must_use]
    pub fn ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
        }
    }
}

impl FromStr for TimeBound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Parse durations first: no time is a valid duration, because a time has no units.
        if let Ok(ms) = brief::parse_ms(text) {
            return Ok(Self::Ago(ms));
        }
        let ms = |at: jiff::Timestamp| u64::try_from(at.as_millisecond()).ok();
        let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).ok().and_then(|at| ms(at.timestamp()));
        let at = match text.parse::<jiff::Timestamp>() {
            Ok(at) => ms(at),
            // Refuse a time of day without an offset, because it could be in any time zone. A date
            // alone is a day in UTC, as in the names of folders.
            Err(_) if text.len() == "2026-11-20".len() => {
                text.parse::<Date>().ok().and_then(|day| utc(day.at(0, 0, 0, 0)))
            }
            Err(_) => None,
        };
        at.map(Self::At).ok_or_else(|| not_a_time(text))
    }
}

/// Returns the error message for an invalid time. The message mentions a missing time zone or day.
fn not_a_time(text: &str) -> String {
    if text.contains(':') && text.parse::<DateTime>().is_ok() {
        return format!(
            "\"{text}\" has no time zone: add Z for UTC, as in {text}Z, or an offset, as in {text}+01:00"
        );
    }
    let time = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if time.contains(':') && time.parse::<Time>().is_ok() {
        return format!("\"{text}\" has no day: add it, as in 2026-11-20T{time}Z");
    }
    format!(
        "\"{text}\" is not a valid time: expected 2026-11-20T07:00:00Z, 2026-11-20T07:00Z, the day 2026-11-20 (UTC), or \
         how long ago, as in 30m, 2h, 7d or PT1H"
    )
}

#[cfg(test)]
mod tests {
    use delivery::time::duration::HOUR_MS;

    use super::*;
    use crate::samples::letter;

    fn patterns(text: &str) -> Vec<Pattern> {
        vec![Pattern::from(text)]
    }

    #[test]
    fn any_value_of_a_field_and_all_fields_have_to_match() {
        let letter = letter(1);
        let all = Filter::default();
        assert!(all.matches(&letter) && !all.needs_content());
        let busy = Filter {
            outcomes: ["TimedOut", "Busy"].map(|word| word.parse().unwrap()).to_vec(),
            ..Filter::default()
        };
        assert!(busy.matches(&letter) && busy.needs_content());
        assert!(
            !Filter { statuses: vec!["4xx".parse().unwrap()], ..busy.clone() }.matches(&letter)
        );
        assert!(
            Filter { statuses: vec!["404".parse().unwrap(), "5xx".parse().unwrap()], ..busy }
                .matches(&letter)
        );
        for (ids, matches) in [
            ("order-1", true),
            ("order-2", false),
            ("*-0000-*", true),
            ("order-*", true),
            ("*", true),
        ] {
            assert_eq!(
                Filter { ids: patterns(ids), ..Filter::default() }.matches(&letter),
                matches,
                "{ids}"
            );
        }
        assert!(!Filter { reasons: vec![Reason::ReplyLoop], ..Filter::default() }.matches(&letter));
        assert!(!Filter { topic: Some("other".to_owned()), ..Filter::default() }.matches(&letter));
        assert!(!Filter { types: patterns("order.paid"), ..Filter::default() }.matches(&letter));
        assert!(
            Filter { destinations: patterns("https://*.example.com/*"), ..Filter::default() }
                .matches(&letter)
        );
    }

    #[test]
    fn since_is_inclusive_and_until_is_not() {
        let letter = letter(1);
        let at_ms = decided_ms(&letter).unwrap();
        let since = |ms| Filter { since_ms: Some(ms), ..Filter::default() };
        let until = |ms| Filter { until_ms: Some(ms), ..Filter::default() };
        assert!(since(at_ms).matches(&letter) && !since(at_ms + 1).matches(&letter));
        assert!(!until(at_ms).matches(&letter) && until(at_ms + 1).matches(&letter));
        let hour = 10 * HOUR_MS..11 * HOUR_MS;
        assert!(
            since(11 * HOUR_MS - 1).may_match_within(&hour)
                && !since(11 * HOUR_MS).may_match_within(&hour)
        );
        assert!(
            !until(10 * HOUR_MS).may_match_within(&hour)
                && until(10 * HOUR_MS + 1).may_match_within(&hour)
        );
    }

    #[test]
    fn no_decision_is_later_than_a_date_can_say() {
        let mut letter = letter(1);
        letter.history.last_mut().unwrap().duration_ms = u64::MAX;
        let at_ms = decided_ms(&letter).unwrap();
        let last = delivery::time::moment::rfc3339(u64::MAX);
        assert_eq!(Some(at_ms), delivery::time::moment::parse(&last));
    }

    #[test]
    fn a_star_matches_anything() {
        for (pattern, text, matches) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(patterns(pattern)[0].matches(text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn a_search_finds_ids_names_and_responses_in_either_case_and_nothing_of_the_data() {
        let letter = StoredDeadLetter { detail: Some("é Ä".to_owned()), ..letter(1) };
        for (text, matches) in [
            ("ORDER-1", true),
            ("00000000-0000-0000-0000-000000000001", true),
            ("shop/orders/bill", true),
            ("created", true),
            (" Billing.Example ", true),
            ("maxdelivery", true),
            ("overloaded\nplease", true),
            ("é Ä", true),
            ("é ä", false),
            ("order-12", false),
            ("specversion", false),
            ("", true),
        ] {
            let filter = Filter { search: Some(SearchText::from(text)), ..Filter::default() };
            assert_eq!(filter.matches(&letter), matches, "{text:?}");
            assert!(filter.needs_content());
        }
        let long = format!("{}needle", "é".repeat(RESPONSE_MAX_CHARS));
        let letter = StoredDeadLetter { last_response: Some(long), ..letter };
        let needle = Filter { search: Some(SearchText::from("needle")), ..Filter::default() };
        assert!(!needle.matches(&letter), "what is not kept in memory is not searched");
    }

    #[test]
    fn invalid_times_statuses_and_names_say_what_is_expected() {
        let day = TimeBound::At(1_795_132_800_000);
        assert_eq!("2026-11-20".parse(), Ok(day));
        assert_eq!("2026-11-20T00:00:00Z".parse(), Ok(day));
        assert_eq!("2026-11-20T02:00:00+02:00".parse(), Ok(day));
        for hour in ["PT1H", "1h", "60m"] {
            assert_eq!(hour.parse::<TimeBound>().unwrap().ms(2 * HOUR_MS), HOUR_MS);
        }
        let minute = TimeBound::At(1_795_158_180_000);
        for text in ["2026-11-20T07:03Z", "2026-11-20T07:03:00Z", "2026-11-20T08:03+01:00"] {
            assert_eq!(text.parse(), Ok(minute), "{text}");
        }
        for (text, advice) in [
            ("yesterday", "expected 2026-11-20T07:00:00Z"),
            ("2026-11-20T07:03", "as in 2026-11-20T07:03Z"),
            ("2026-11-20T00:00:00", "has no time zone"),
            ("07:03", "as in 2026-11-20T07:03Z"),
            ("07:03:00Z", "has no day"),
            ("2026-13-01", "is not a valid time"),
            ("1", "is not a valid time"),
            ("P1M", "is not a valid time"),
        ] {
            let problem = text.parse::<TimeBound>().unwrap_err();
            assert!(problem.contains(advice), "{problem}");
        }
        let range = |text: &str| text.parse::<StatusRange>();
        assert_eq!(range("5xx"), Ok(StatusRange(500..600)));
        assert_eq!(range("404-409"), Ok(StatusRange(404..410)));
        for text in ["", "99", "1000", "xx", "10xx", "5x", "-1", "65535xx", "500-", "5xx-503"] {
            assert!(range(text).unwrap_err().contains("5xx"), "{text}");
        }
        for text in ["6xx", "600", "550-600", "99-200"] {
            assert!(range(text).unwrap_err().contains("is 100 to 599"), "{text}");
        }
        assert!(range("500-400").unwrap_err().contains("is an empty range"));
    }
}
