//! What would be right in place of a word that is not known: "did you mean …?", or the list.
//!
//! Separate because it looks at words only, wherever they stand: fields, kinds, choices.

/// What would be right in place of a word: the one it is nearest to, else the list. A word that is
/// known, but not where it stands, is no suggestion for itself.
pub(super) fn hint(word: &str, known: &[&str], listed: &[&str]) -> String {
    let near = |candidate: &&&str| {
        **candidate != word && distance(word, candidate) <= (candidate.chars().count() / 3).max(1)
    };
    match known.iter().filter(near).min_by_key(|candidate| distance(word, candidate)) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("known: {}", listed.join(", ")),
    }
}

/// The longest word that suggestions are looked for, in characters: the work grows with its length.
const WORD_MAX: usize = 64;

/// How many characters to insert, remove or change to make one word of the other; case does not
/// count.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|word| {
        word.chars().take(WORD_MAX).flat_map(char::to_lowercase).collect::<Vec<char>>()
    });
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, of_a) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, of_b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(of_a != of_b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
        assert_eq!(hint("maxattempt", &known, &known), "did you mean maxAttempts?");
        assert_eq!(hint("uri", &known, &known), "did you mean url?");
        assert_eq!(hint("url", &known, &known), "known: maxAttempts, timeToLive, url");
        assert_eq!(hint("zzz", &known, &known), "known: maxAttempts, timeToLive, url");
    }
}
