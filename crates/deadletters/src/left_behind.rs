//! Counts open dead letters whose deliveries a person stopped: the subscription was paused, or the
//! destination disabled.
//!
//! Separate from the statistics because the number of reads is limited: `lastmile doctor` needs the
//! result within seconds.

use std::collections::{BTreeMap, HashMap};

use delivery::delivery::reason::Reason;
use delivery::subscription::name::SubscriptionName;
use futures::stream::TryStreamExt as _;
use uuid::Uuid;

use crate::dead_letters::DeadLetters;
use crate::filter::Filter;
use crate::state::{LetterState, WantedState};

/// Number of blobs after which counting stops. Reading this many takes a few seconds.
pub const LEFT_BEHIND_READS_MAX: u64 = 5_000;

/// Numbers of open dead letters whose deliveries a person stopped.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// The number of dead letters for each subscription and reason.
    pub counts: BTreeMap<(SubscriptionName, Reason), u64>,
    /// True if all blobs were read; false if the limit ended the count.
    pub is_all: bool,
}

impl DeadLetters {
    /// Counts open dead letters of paused subscriptions and disabled destinations. Counting stops
    /// after [`LEFT_BEHIND_READS_MAX`] blobs, roughly the newest.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn left_behind(&self) -> anyhow::Result<LeftBehind> {
        let reasons = vec![Reason::Paused, Reason::DestinationDisabled];
        let wanted_states = vec![WantedState::Only(LetterState::Open)];
        let filter = Filter { reasons, wanted_states, ..Filter::default() };
        let filter = self.with_states(filter).await?;
        let mut blobs = self.of_every_blob(&filter);
        let mut found: HashMap<Uuid, (SubscriptionName, Reason)> = HashMap::new();
        let (mut reads, mut is_all) = (0, false);
        while reads < LEFT_BEHIND_READS_MAX && !is_all {
            reads += 1;
            let read = blobs.try_next().await?;
            is_all = read.is_none();
            let set_aside = read.flatten().filter(|letter| filter.matches(letter));
            found.extend(set_aside.and_then(|letter| {
                Some((letter.id, (letter.subscription, letter.reason.parse().ok()?)))
            }));
        }
        let mut counts = BTreeMap::new();
        found.into_values().for_each(|group| *counts.entry(group).or_default() += 1);
        Ok(LeftBehind { counts, is_all })
    }
}

#[cfg(test)]
mod tests {
    use delivery::time::moment;

    use super::*;
    use crate::container::DeadLetterContainer;
    use crate::dismissed::Dismissal;
    use crate::ledger::{LedgerEntry, ReplayState, write_entries};

    #[tokio::test]
    async fn what_was_set_aside_is_left_behind_until_it_is_replayed_or_dismissed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |key: &str, bytes: &[u8]| {
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let at = moment::rfc3339(0);
        for (number, reason) in [
            (1, "Paused"),
            (2, "Paused"),
            (3, "Paused"),
            (4, "DestinationDisabled"),
            (5, "BadRequest"),
        ] {
            let id = Uuid::from_u128(number);
            let about = format!(
                r#"{{"deadletterid":"{id}","deadletterreasoncode":"{reason}","publishutc":"{at}"}}"#
            );
            let blob = format!(r#"{{"event":{{}},"deadletterProperties":{about}}}"#);
            write(&format!("shop/orders/billing/2026/11/20/7/{id}.json"), blob.as_bytes());
        }
        let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
        let letters = DeadLetters::new(container);
        let sent = LedgerEntry {
            letter: Uuid::from_u128(1),
            delivery: Uuid::from_u128(9),
            state: ReplayState::Sent,
            at: at.clone(),
            problem: None,
            end: None,
        };
        let header =
            r#"{"v":1,"job":"j","at":"2026-11-20T07:00:00Z","to":"topic a/b","letters":1}"#;
        let done = [format!("{header}\n").into_bytes(), write_entries([&sent])].concat();
        write("_replays/j/done.ndjson", &done);
        let letters_of = vec![Uuid::from_u128(2)];
        let dismissal = Dismissal::new(letters_of, [], at, None, "refunded").unwrap();
        letters.dismiss(&dismissal).await.unwrap();
        let left = letters.left_behind().await.unwrap();
        let name: SubscriptionName = "shop/orders/billing".parse().unwrap();
        let expected =
            [((name.clone(), Reason::Paused), 1), ((name, Reason::DestinationDisabled), 1)];
        assert_eq!((left.counts, left.is_all), (BTreeMap::from(expected), true));
    }
}
