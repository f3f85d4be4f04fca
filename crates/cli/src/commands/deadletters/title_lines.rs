//! Splits a title into two lines, of which the second has less space. Pure.
//!
//! Separate from the lists that show titles, because splitting needs only the text of a title.
//!
//! Promises: a title that fits is complete. Otherwise, its beginning and its end are kept: the
//! beginning contains the status, and the end often contains the field. Sentences at the end that
//! contain no field are omitted first.

use crate::terminal::text::first_chars;

/// The maximum length of a partial word that is omitted. If the second line would begin with such a
/// part, it begins with the next word instead.
const WORD_PART_MAX_CHARS: usize = 12;

/// Splits a title after the words that fit into `room` characters.
pub(super) fn broken(title: &str, room: usize) -> [&str; 2] {
    let first = first_chars(title, room + 1);
    if first.chars().count() <= room {
        return [title, ""];
    }
    let at_word = first.rfind(' ').filter(|at| *at >= room / 2);
    let (first, rest) = title.split_at(at_word.unwrap_or_else(|| first_chars(title, room).len()));
    [first, rest.trim_start()]
}

/// Fits a title into two lines of at most `room` and `rest_room` characters. An ellipsis replaces
/// omitted text.
pub(super) fn fitted(title: &str, room: usize, rest_room: usize) -> [String; 2] {
    let [first, rest] = broken(title, room);
    if rest.chars().count() <= rest_room {
        return [first, rest].map(ToOwned::to_owned);
    }
    let sentences = first_sentences(title, room + rest_room);
    let title = sentences.as_deref().unwrap_or(title);
    let [first, rest] = broken(title, room);
    if rest.chars().count() <= rest_room {
        return [first, rest].map(ToOwned::to_owned);
    }
    let excess = title.chars().count().saturating_sub(room + rest_room);
    if excess == 0 {
        let (first, rest) = title.split_at(first_chars(title, room).len());
        return [first, rest.trim_start()].map(ToOwned::to_owned);
    }
    let end: String = title.chars().skip(room + excess).collect();
    let at_word = end.split_once(' ');
    let at_word = at_word.filter(|(part, _)| part.chars().count() <= WORD_PART_MAX_CHARS);
    let end = at_word.map_or(end.as_str(), |(_, words)| words).to_owned();
    [format!("{}…", first_chars(title, room.saturating_sub(1))), end]
}

/// Returns as many complete sentences as fit; if none fits, returns the shortest beginning of
/// complete sentences. Every result is longer than a third of `room`; returns `None` if no sentence
/// ends after that third. Also returns `None` if the title ends with the name of a field, which
/// must stay visible.
fn first_sentences(title: &str, room: usize) -> Option<String> {
    let names_field = title.rsplit_once(": ").is_some_and(|(_, last)| !last.contains(' '));
    let is_end = |at: &usize| {
        let next = title.get(at + 2..).and_then(|rest| rest.chars().next());
        *at >= room / 3 && next.is_some_and(char::is_uppercase)
    };
    let ends: Vec<usize> = title.match_indices(". ").map(|(at, _)| at).filter(is_end).collect();
    let fitting = ends.iter().rfind(|end| **end < room);
    let end = fitting.or(ends.first()).filter(|_| !names_field)?;
    title.get(..=*end).map(|sentences| format!("{sentences}…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_has_room_is_broken_at_a_word() {
        for (title, lines) in [
            ("422 short", ["422 short", ""]),
            ("422 exactly twenty c", ["422 exactly twenty c", ""]),
            ("422 must be short: cart.owner", ["422 must be short:", "cart.owner"]),
            ("422 a_word_without_any_end", ["422 a_word_without_a", "ny_end"]),
            ("422 a word_that_is_long end", ["422 a word_that_is_l", "ong end"]),
            (
                "422 見つかりません 見つかりません 見つかりません",
                ["422 見つかりません 見つかりません", "見つかりません"],
            ),
        ] {
            assert_eq!(fitted(title, 20, 12), lines, "{title}");
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_in_the_middle() {
        for (title, lines) in [
            (
                "422 the size of it must be greater than 1: cart.owner",
                ["422 the size of it …", "cart.owner"],
            ),
            (
                "422 the size of it is wrong, cart_of_a_customer",
                ["422 the size of it …", "f_a_customer"],
            ),
        ] {
            assert_eq!(fitted(title, 20, 12), lines, "{title}");
        }
    }

    #[test]
    fn sentences_at_the_end_are_left_out_before_the_middle_unless_a_field_follows() {
        let title = "404 It is gone. Read more at example.com";
        assert_eq!(fitted(title, 20, 12), ["404 It is gone.…", ""]);
        let long = "404 The size of it is much too great. Read more";
        assert_eq!(fitted(long, 20, 12), ["404 The size of it …", "too great.…"]);
        let with_field = format!("{title}: cart.owner");
        assert_eq!(fitted(&with_field, 20, 12), ["404 It is gone. Rea…", "cart.owner"]);
    }
}
