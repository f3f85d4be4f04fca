//! Hints for an unknown name or value: "did you mean …?", or the list of known names or values.
//!
//! This module is separate because it only compares strings, whether they name fields, types or
//! values.

/// Returns a hint for an unknown word: the most similar known word, or all known words if none is
/// similar. A word that is known but invalid in this position is not suggested again.
pub fn hint(word: &str, known: &[&str]) -> String {
    let near = |candidate: &&&str| {
        **candidate != word && distance(word, candidate) <= (candidate.chars().count() / 3).max(1)
    };
    match known.iter().filter(near).min_by_key(|candidate| distance(word, candidate)) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("known: {}", known.join(", ")),
    }
}

/// Sorts words by their edit distance from `word`, then alphabetically.
pub fn sort_nearest_first(word: &str, words: &mut [String]) {
    words.sort_by_cached_key(|candidate| (distance(word, candidate), candidate.clone()));
}

/// Maximum number of characters that are compared. The limit exists because the time of a
/// comparison grows with the length of the words.
const WORD_MAX: usize = 64;

/// Returns the edit distance between two words; case is ignored.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b]
        .map(|word| word.chars().take(WORD_MAX).flat_map(char::to_lowercase).collect::<String>());
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_between_words_counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("URL", "url", 0),
            ("rety", "retry", 1),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_gets_the_list() {
        let known = ["maxAttempts", "timeToLive", "url"];
        assert_eq!(hint("maxattempt", &known), "did you mean maxAttempts?");
        assert_eq!(hint("uri", &known), "did you mean url?");
        assert_eq!(hint("url", &known), "known: maxAttempts, timeToLive, url");
        assert_eq!(hint("zzz", &known), "known: maxAttempts, timeToLive, url");
        let mut words = ["url", "timeToLive", "uris"].map(ToOwned::to_owned);
        sort_nearest_first("uri", &mut words);
        assert_eq!(words, ["uris", "url", "timeToLive"]);
    }
}
