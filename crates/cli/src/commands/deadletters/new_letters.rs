//! Finds dead letters that are stored while a command runs. Earlier blobs are listed again, but not
//! read.

use std::collections::HashSet;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::filter::Filter;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;

pub(super) struct NewLetters {
    letters: DeadLetters,
    filter: Filter,
    recent_ms: Option<u64>,
    /// The keys of blobs that [`Self::next`] skips: they existed at the start, or have been read.
    seen: HashSet<String>,
    looked_ms: u64,
}

impl NewLetters {
    /// Lists all dead letters that exist now, so that [`Self::next`] skips them. With `recent_ms`,
    /// each later call lists only the folders of the last `recent_ms` milliseconds. It then misses
    /// dead letters that were stored with a longer delay.
    pub(super) async fn after_now(
        letters: DeadLetters,
        filter: Filter,
        recent_ms: Option<u64>,
    ) -> anyhow::Result<Self> {
        let (looked_ms, seen) = (Machine.now_ms(), HashSet::new());
        let mut new = Self { letters, filter, recent_ms, seen, looked_ms };
        new.seen = new.letters.keys(&new.listed()).await?;
        Ok(new)
    }

    /// Makes [`Self::next`] skip these dead letters, because the caller has already read them.
    pub(super) fn leave_out(&mut self, letters: &[StoredDeadLetter]) {
        self.seen.extend(letters.iter().map(|letter| letter.key.clone()));
    }

    /// Reads the dead letters that were stored since the last call, oldest first.
    pub(super) async fn next(&mut self) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let listed = self.listed();
        self.looked_ms = Machine.now_ms();
        let mut new = self.letters.unseen(&listed, &mut self.seen).await?;
        let mut ids = HashSet::new();
        new.retain(|letter| self.filter.matches(letter) && ids.insert(letter.id));
        Ok(new)
    }

    /// Returns the filter that selects the folders to list. The caller's filter selects dead
    /// letters within them.
    fn listed(&self) -> Filter {
        let recent = self.recent_ms.map(|recent_ms| self.looked_ms.saturating_sub(recent_ms));
        // `None` sorts before every time, so the maximum is the stricter limit.
        Filter { since_ms: self.filter.since_ms.max(recent), ..self.filter.clone() }
    }
}

#[cfg(test)]
mod tests {
    use deadletters::container::DeadLetterContainer;
    use delivery::time::moment::{hour_folder, rfc3339};

    use super::*;

    #[tokio::test]
    async fn only_what_comes_is_read_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |number: u128| {
            let (id, now_ms) = (uuid::Uuid::from_u128(number), Machine.now_ms());
            let at = rfc3339(now_ms);
            let about = format!(
                r#"{{"deadletterid":"{id}","deadletterreasoncode":"Paused","publishutc":"{at}"}}"#
            );
            let key = format!("shop/orders/billing/{}/{id}.json", hour_folder(now_ms));
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!(r#"{{"event":{{}},"deadletterProperties":{about}}}"#))
                .unwrap();
            id
        };
        write(1);
        let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
        let letters = DeadLetters::new(container.clone());
        let mut new = NewLetters::after_now(letters, Filter::default(), None).await.unwrap();
        let listing = container.requests();
        assert_eq!(new.next().await.unwrap(), []);
        let second = write(2);
        let ids: Vec<_> = new.next().await.unwrap().iter().map(|letter| letter.id).collect();
        assert_eq!(ids, [second]);
        assert_eq!(new.next().await.unwrap(), []);
        assert_eq!(container.requests(), 4 * listing + 1);
    }
}
