//! Text without regard to case: Unicode's simple case folding.
//!
//! Separate because lower case is no such comparison: a sigma at the end of a word has a lower case of its
//! own, so `ΟΔΟΣ` in lower case is not how `ΟΔΟΣΑ` begins. Folding maps each character to one
//! character, whatever is beside it, so what begins, ends with or contains a text still does. `ß` is not `ss`, which would be
//! full folding: Event Grid compares ordinally, character by character.
//! <https://www.unicode.org/reports/tr44/#CaseFolding.txt>

/// The text with each character folded.
#[must_use]
pub fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(fold).collect() }
}

/// Whether two texts are the same without regard to case.
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
