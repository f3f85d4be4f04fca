//! Counts dead letters by minute and cause, for notices.
//!
//! Processes add their counts to one item of the table for each minute, which expires a day later. When its minute is over, one
//! CloudEvent is published for each cause. The ids of these events depend on the minute, the cause and its first dead letter, so
//! a repeated publication has the same ids. The counts are approximate: a process that ends before it writes loses its counts,
//! and a write without a response may count twice. Dead letters themselves do not depend on any of this.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::notice::NOTICE_NAMESPACE;
use super::shared::{Document, VERSION};
use crate::table::ItemKey;
use crate::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};
use crate::time::moment::rfc3339;

/// The partition of the items of all minutes.
const PARTITION: &str = "@deadletters";
/// The `source` of these notices.
const SOURCE: &str = "/lastmile/deadletters";
/// Delay of the notices after the end of their minute: by then all processes have written their counts.
const AFTER_MS: u64 = 15 * SECOND_MS;
/// Counts of a minute are written for this time after its end. The rest of [`AFTER_MS`] allows for clocks that differ.
const WRITTEN_AFTER_MS: u64 = 10 * SECOND_MS;
/// Causes with a count of their own; the others share one.
const CAUSES_MAX: usize = 40;
/// The cause that counts all dead letters beyond [`CAUSES_MAX`] causes.
const OTHERS: &str = "Others";
/// Subscriptions of a cause that are stored by name; the others are only counted.
const NAMED_MAX: usize = 50;
/// Subscriptions of a cause that its event names.
const TOLD_MAX: usize = 10;

/// Dead letters of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Cause {
    count: u64,
    /// Counts by subscription.
    subscriptions: BTreeMap<String, u64>,
    /// The id of the first dead letter.
    example: Uuid,
}

/// Counted dead letters, by reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Causes(BTreeMap<String, Cause>);

impl Causes {
    /// True without any count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a dead letter with this id.
    pub fn note(&mut self, reason: &str, subscription: &str, id: Uuid) {
        self.add(reason, 1, id, [(subscription, 1)]);
    }

    /// Adds the counts of another process or an earlier time.
    pub fn add_all(&mut self, more: &Self) {
        for (reason, Cause { count, subscriptions, example }) in &more.0 {
            let named = subscriptions.iter().map(|(name, count)| (name.as_str(), *count));
            self.add(reason, *count, *example, named);
        }
    }

    fn add<'a>(
        &mut self,
        reason: &str,
        count: u64,
        example: Uuid,
        subscriptions: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let causes = self.0.keys().filter(|known| *known != OTHERS).count();
        let is_one_too_many = causes >= CAUSES_MAX && !self.0.contains_key(reason);
        let reason = if is_one_too_many { OTHERS } else { reason };
        let new = || Cause { count: 0, subscriptions: BTreeMap::new(), example };
        let cause = self.0.entry(reason.to_owned()).or_insert_with(new);
        cause.count = cause.count.saturating_add(count);
        for (name, count) in subscriptions {
            if let Some(known) = cause.subscriptions.get_mut(name) {
                *known = known.saturating_add(count);
            } else if cause.subscriptions.len() < NAMED_MAX {
                cause.subscriptions.insert(name.to_owned(), count);
            }
        }
    }
}

/// A minute of dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// Its beginning.
    pub at_ms: u64,
}

impl Minute {
    /// The minute that contains this time.
    #[must_use]
    pub fn of(now_ms: u64) -> Self {
        Self { at_ms: now_ms - now_ms % MINUTE_MS }
    }

    /// Time at which its notices are published.
    #[must_use]
    pub fn due_ms(self) -> u64 {
        self.at_ms.saturating_add(MINUTE_MS + AFTER_MS)
    }

    /// End of writing its counts. Later counts might not be published.
    #[must_use]
    pub fn written_until_ms(self) -> u64 {
        self.at_ms.saturating_add(MINUTE_MS + WRITTEN_AFTER_MS)
    }

    /// Its item of the table.
    #[must_use]
    pub fn item(self) -> ItemKey {
        ItemKey::new(PARTITION, rfc3339(self.at_ms))
    }

    /// A CloudEvent without counts, and its id: for programs that cannot read the item.
    #[must_use]
    pub fn event(self, counted: &Causes) -> (Uuid, String) {
        let example = counted.0.values().next().map_or(Uuid::nil(), |cause| cause.example);
        self.event_of("", example, json!({ "minute": rfc3339(self.at_ms) }))
    }

    fn event_of(self, reason: &str, example: Uuid, data: Value) -> (Uuid, String) {
        let name = format!("deadletters\n{}\n{reason}\n{example}", self.at_ms);
        let id = Uuid::new_v5(&NOTICE_NAMESPACE, name.as_bytes());
        let event = json!({
            "specversion": "1.0",
            "id": id,
            "source": SOURCE,
            "type": "dev.lastmile.deadletters",
            "time": rfc3339(self.at_ms),
            "datacontenttype": "application/json",
            "data": data,
        });
        (id, event.to_string())
    }
}

/// The document of a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteOfDeadLetters {
    v: u32,
    at_ms: u64,
    causes: Causes,
}

impl Document for MinuteOfDeadLetters {
    fn expires_ms(&self) -> Option<u64> {
        Some(self.at_ms.saturating_add(DAY_MS))
    }
}

impl MinuteOfDeadLetters {
    /// True if it is of this minute, and not of the same time of another day.
    #[must_use]
    pub fn is_of(&self, minute: Minute) -> bool {
        self.at_ms == minute.at_ms
    }

    /// The document of a minute after these counts are added to it.
    #[must_use]
    pub fn with(stored: Option<Self>, minute: Minute, counted: &Causes) -> Self {
        let new = || Self { v: VERSION, at_ms: minute.at_ms, causes: Causes::default() };
        let mut document = stored.filter(|stored| stored.is_of(minute)).unwrap_or_else(new);
        document.causes.add_all(counted);
        document
    }

    /// The CloudEvent of each cause, and its id.
    pub fn events(&self) -> impl Iterator<Item = (Uuid, String)> {
        let minute = Minute { at_ms: self.at_ms };
        self.causes.0.iter().map(move |(reason, cause)| {
            let mut most: Vec<(&String, &u64)> = cause.subscriptions.iter().collect();
            // Stable, so that subscriptions with equal counts are named in alphabetical order.
            most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            most.truncate(TOLD_MAX);
            let told = most.iter().fold(0_u64, |told, (_, count)| told.saturating_add(**count));
            let subscription =
                |(name, count): &(&String, &u64)| json!({ "subscription": name, "count": count });
            let data = json!({
                "minute": rfc3339(minute.at_ms),
                "reason": reason,
                "count": cause.count,
                "subscriptions": most.iter().map(subscription).collect::<Vec<_>>(),
                "others": cause.count.saturating_sub(told),
                "example": cause.example,
            });
            minute.event_of(reason, cause.example, data)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 07:03 of a day.
    const NOW_MS: u64 = 1_795_158_180_000;

    fn minute() -> Minute {
        Minute::of(NOW_MS + 59_999)
    }

    fn counted(letters: &[(&str, &str, u128)]) -> Causes {
        let mut causes = Causes::default();
        for (reason, subscription, id) in letters {
            causes.note(reason, subscription, Uuid::from_u128(*id));
        }
        causes
    }

    fn document(counted: &Causes) -> MinuteOfDeadLetters {
        MinuteOfDeadLetters::with(None, minute(), counted)
    }

    fn data(document: &MinuteOfDeadLetters) -> Vec<Value> {
        let parsed = |(_, event): (Uuid, String)| -> Value {
            serde_json::from_str(&event).expect("an event is JSON")
        };
        document.events().map(|event| parsed(event)["data"].take()).collect()
    }

    #[test]
    fn a_minute_has_an_item_and_is_told_of_when_it_is_over() {
        assert_eq!(minute(), Minute { at_ms: NOW_MS });
        assert_eq!(minute().due_ms(), NOW_MS + 75_000);
        assert_eq!(minute().written_until_ms(), NOW_MS + 70_000);
        assert_eq!(minute().item().to_string(), "@deadletters 2026-11-20T07:03:00.0000000Z");
        assert_ne!(Minute::of(NOW_MS + MINUTE_MS).item(), minute().item());
    }

    #[test]
    fn what_processes_counted_adds_up_by_cause_and_subscription() {
        let first = counted(&[("TimeToLiveExceeded", "n/t/a", 1), ("ReplyLoop", "n/t/a", 2)]);
        let second = counted(&[("TimeToLiveExceeded", "n/t/b", 3), ("ReplyLoop", "n/t/a", 4)]);
        let both = MinuteOfDeadLetters::with(Some(document(&first)), minute(), &second);
        assert_eq!(MinuteOfDeadLetters::read(both.entry().text.as_bytes()), Ok(both.clone()));
        let found: Vec<String> = data(&both)
            .iter()
            .map(|it| format!("{} {} {}", it["reason"], it["count"], it["subscriptions"]))
            .collect();
        let expected = [
            r#""ReplyLoop" 2 [{"count":2,"subscription":"n/t/a"}]"#,
            r#""TimeToLiveExceeded" 2 [{"count":1,"subscription":"n/t/a"},{"count":1,"subscription":"n/t/b"}]"#,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_counted_on_another_day_is_replaced() {
        let counted = counted(&[("ReplyLoop", "n/t/a", 1)]);
        let tomorrow = Minute::of(NOW_MS + DAY_MS);
        let next = MinuteOfDeadLetters::with(Some(document(&counted)), tomorrow, &counted);
        assert!(next.is_of(tomorrow) && !next.is_of(minute()));
        assert_eq!(data(&next)[0]["count"], 1);
    }

    #[test]
    fn a_cause_is_a_cloud_event_whose_id_stays_the_same_while_its_count_grows() {
        let of_first = document(&counted(&[("ReplyLoop", "n/t/a", 7)]));
        let more = counted(&[("ReplyLoop", "n/t/a", 8)]);
        let grown = MinuteOfDeadLetters::with(Some(of_first.clone()), minute(), &more);
        let ids = |document: &MinuteOfDeadLetters| -> Vec<Uuid> {
            document.events().map(|(id, _)| id).collect()
        };
        assert_eq!(ids(&grown), ids(&of_first));
        let (id, event) = of_first.events().next().expect("there is one");
        let event: Value = serde_json::from_str(&event).expect("an event is JSON");
        let expected = json!({
            "specversion": "1.0",
            "id": id,
            "source": "/lastmile/deadletters",
            "type": "dev.lastmile.deadletters",
            "time": "2026-11-20T07:03:00.0000000Z",
            "datacontenttype": "application/json",
            "data": {
                "minute": "2026-11-20T07:03:00.0000000Z",
                "reason": "ReplyLoop",
                "count": 1,
                "subscriptions": [{ "subscription": "n/t/a", "count": 1 }],
                "others": 0,
                "example": "00000000-0000-0000-0000-000000000007",
            },
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn ten_subscriptions_are_told_of_and_the_document_stays_small() {
        let mut causes = Causes::default();
        for (reason, name) in (0..100).flat_map(|reason| (0..100).map(move |name| (reason, name))) {
            for _ in 0..=u32::from(name == 5) {
                causes.note(&format!("Reason{reason:03}"), &format!("n/t/s{name:02}"), Uuid::nil());
            }
        }
        let document = document(&causes);
        let data = data(&document);
        assert_eq!(data.len(), CAUSES_MAX + 1);
        let counts = |of: &Value| of["count"].as_u64().expect("a number");
        assert_eq!(data.iter().map(counts).sum::<u64>(), 100 * 101);
        assert_eq!(data[1]["subscriptions"].as_array().map(Vec::len), Some(TOLD_MAX));
        assert_eq!(data[1]["subscriptions"][0], json!({ "subscription": "n/t/s05", "count": 2 }));
        assert_eq!(data[1]["others"], 101 - 11);
        let length = document.entry().text.len();
        assert!(length < 50_000, "{length}");
    }

    #[test]
    fn a_document_with_counts_that_no_number_can_hold_together_is_told_of() {
        let largest = u64::MAX;
        let document = format!(
            r#"{{"v":1,"at_ms":{largest},"causes":{{"a":{{"count":{largest},"subscriptions":{{"n/t/a":{largest},"n/t/b":1}},"example":"{}"}}}}}}"#,
            Uuid::nil()
        );
        let document = MinuteOfDeadLetters::read(document.as_bytes()).expect("a document");
        assert_eq!(data(&document)[0]["others"], 0);
    }
}
