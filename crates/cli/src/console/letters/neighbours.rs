//! Finds the neighbours of a dead letter: the next newer and the next older dead letter in the
//! filtered list, and other dead letters of the same event. Pure: uses only cached data.

use deadletters::filter::Filter;
use deadletters::letter_cache::LetterCache;
use delivery::deadletter::stored::StoredDeadLetter;
use maud::{Markup, html};
use uuid::Uuid;

use crate::console::shell::markup::{line, word};
use crate::console::shell::query::{LIST, Query, href};
use crate::terminal::text;

/// The maximum number of dead letters of the same event that the page shows.
const RELATED_MAX: usize = 8;

/// The position of a dead letter in the filtered list, and the dead letters before and after it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::console) struct ListPlace {
    /// The position of the dead letter in the list, from 1.
    number: usize,
    count: usize,
    newer: Option<Uuid>,
    older: Option<Uuid>,
}

impl ListPlace {
    /// Finds a dead letter in the filtered list; `None` if the list does not contain it.
    pub(in crate::console) fn find(id: Uuid, filter: &Filter, cache: &LetterCache) -> Option<Self> {
        let ids: Vec<Uuid> = cache.matching(filter).iter().map(|letter| letter.id).collect();
        let at = ids.iter().position(|other| *other == id)?;
        let newer = at.checked_sub(1).and_then(|at| ids.get(at).copied());
        Some(Self { number: at + 1, count: ids.len(), newer, older: ids.get(at + 1).copied() })
    }

    /// Returns the number of the list page that shows this dead letter, from 1.
    pub(in crate::console) fn page(&self, limit: usize) -> usize {
        self.number.div_ceil(limit.max(1))
    }

    /// Renders links to the next newer and the next older dead letter.
    pub(in crate::console) fn links(&self, query: &Query) -> Markup {
        let step = |id: Option<Uuid>, rel: &str, name: &str| {
            html! { @match id {
                Some(id) => a .button rel=(rel) href=(query.letter(id)) { (name) },
                None => span .button.off { (name) },
            } }
        };
        html! { nav .steps aria-label="Dead letters in this list" {
            (step(self.newer, "prev", "Newer"))
            span { (text::grouped(self.number as u64)) " of " (text::grouped(self.count as u64)) }
            (step(self.older, "next", "Older"))
        } }
    }
}

/// Renders links to the other dead letters of the same event, each with its subscription and its
/// reason.
pub(in crate::console) fn related(letter: &StoredDeadLetter, cache: &LetterCache) -> Markup {
    let is_same = |other: &StoredDeadLetter| {
        other.id != letter.id && other.event_id == letter.event_id && other.source == letter.source
    };
    let others: Vec<_> = match &letter.event_id {
        Some(_) => cache.letters.iter().filter(|other| is_same(other)).collect(),
        None => Vec::new(),
    };
    // An id with a star would be a pattern and match other events.
    let all = letter.event_id.as_deref().filter(|id| !id.contains('*'));
    html! { @if !others.is_empty() { section aria-labelledby="related" {
        h2 #related {
            "The same event"
            span .of { " " (text::dead_letters(others.len() as u64)) " besides this one" }
        }
        ul .related {
            @for other in others.iter().take(RELATED_MAX) {
                li {
                    a href={ "/letters/" (other.id) } { (word(&other.subscription.to_string())) }
                    " " span .kind { (line(&other.reason)) }
                }
            }
        }
        @if let Some(id) = all { p { a href=(href(LIST, [("id", id), ("state", "all")])) { "All dead letters of this event" } } }
    } } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn cache(count: u32) -> LetterCache {
        let letter = |number: u32| {
            let id = format!("00000000-0000-0000-0000-{number:012}");
            let reason = if number.is_multiple_of(2) { "Even" } else { "Odd" };
            let blob = format!(
                r#"{{"event":{{"id":"order-1"}},"deadletterProperties":{{"deadletterreasoncode":"{reason}"}}}}"#
            );
            let key = format!("a/b/s{number}/2026/11/20/7/{id}.json");
            Arc::new(delivery::deadletter::stored::read(&key, "", blob.as_bytes()).unwrap())
        };
        let mut cache = LetterCache::default();
        cache.letters = (1..=count).map(letter).collect();
        cache
    }

    #[test]
    fn the_next_dead_letters_are_those_that_the_filters_leave() {
        let cache = cache(5);
        let id = |number: u128| Uuid::parse_str(&format!("{number:032}")).unwrap();
        let place = |number| ListPlace::find(id(number), &Filter::default(), &cache);
        let expected = |number, newer, older| Some(ListPlace { number, count: 5, newer, older });
        assert_eq!(place(1), expected(1, None, Some(id(2))));
        assert_eq!(place(3), expected(3, Some(id(2)), Some(id(4))));
        assert_eq!(place(5), expected(5, Some(id(4)), None));
        assert_eq!(place(6), None);
        let filter = Filter { subscription: Some("s4".to_owned()), ..Filter::default() };
        let alone = ListPlace { number: 1, count: 1, newer: None, older: None };
        assert_eq!(ListPlace::find(id(4), &filter, &cache), Some(alone));
        assert_eq!([1, 2, 3].map(|limit| place(3).unwrap().page(limit)), [3, 2, 1]);
    }

    #[test]
    fn other_dead_letters_of_an_event_are_linked() {
        let cache = cache(10);
        let shown = related(&cache.letters[0], &cache).into_string();
        assert!(shown.contains("9 dead letters besides this one"), "{shown}");
        assert_eq!(shown.matches("href=\"/letters/").count(), RELATED_MAX);
        assert!(shown.contains("href=\"/letters?id=order-1&amp;state=all\""), "{shown}");
        let other =
            StoredDeadLetter { source: Some("x".to_owned()), ..(*cache.letters[0]).clone() };
        assert_eq!(related(&other, &cache).into_string(), "");
    }
}
