//! Compares texts without regard to case, by Unicode's simple case folding.
//!
//! This module is separate because comparing lower-case forms is wrong. A sigma at the end of a
//! word has a special lower-case form. So `ΟΔΟΣ` in lower case is not a prefix of `ΟΔΟΣΑ` in lower
//! case. Folding maps each character to one character, independent of its neighbours. So folded
//! texts keep their prefixes, suffixes and substrings. `ß` does not equal `ss`, as it would with
//! full folding: Event Grid compares ordinally, character by character.
//! <https://www.unicode.org/reports/tr44/#CaseFolding.txt>

/// Returns a copy of the text with every character case-folded.
#[must_use]
pub fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(fold).collect() }
}

/// Returns true if two texts are equal; case is ignored.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || a.chars().map(fold).eq(b.chars().map(fold))
}

fn fold(c: char) -> char {
    let folded = unicode_case_mapping::case_folded(c);
    folded.and_then(|folded| char::from_u32(folded.get())).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_in_every_case_of_every_script() {
        for (a, b) in [
            ("Order", "ORDER"),
            ("ΟΔΟΣ", "οδος"),
            ("οδοσ", "οδος"),
            ("ÉTÉ", "été"),
            ("ДОМ", "дом"),
            ("ẞ", "ß"),
            ("ǅ", "ǆ"),
            ("µ", "μ"),
            ("Ꭰ", "ꭰ"),
            ("𐐀", "𐐨"),
        ] {
            assert!(same(a, b) && folded(a) == folded(b), "{a} {b}");
        }
        for (a, b) in [("ß", "ss"), ("İ", "i"), ("ı", "i"), ("é", "e"), ("ﬁ", "fi"), ("a", "aa")]
        {
            assert!(!same(a, b) && folded(a) != folded(b), "{a} {b}");
        }
    }

    #[test]
    fn a_text_begins_ends_and_contains_what_it_did_before() {
        let (long, end) = (folded("ΟΔΟΣΑΣ"), folded("ΟΔΟΣ"));
        assert!(long.starts_with(&end));
        assert!(folded("xΟΔΟΣ y").contains(&end) && folded("Σ").chars().eq(folded("ς").chars()));
    }
}
