//! [`Pattern`]: the pattern of the operator `LIKE`.
//!
//! This module is separate because patterns are a small language. `%` matches any text, `_` matches
//! one character, and a backslash escapes either of them. The number of steps of a comparison is at
//! most the product of the lengths of text and pattern. The caller may end a comparison earlier.

use std::borrow::Cow;
use std::fmt;

use super::value::Value;

/// A parsed pattern of `LIKE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    /// The text of the pattern, as it is written between the quotes.
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Text,
    Character,
    This(char),
}

impl Pattern {
    pub(super) fn new(text: String) -> Self {
        let mut parts = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            let mut after = rest.clone();
            parts.push(match (character, after.next()) {
                ('\\', Some(wildcard @ ('%' | '_'))) => {
                    rest = after;
                    Part::This(wildcard)
                }
                ('%', _) => Part::Text,
                ('_', _) => Part::Character,
                (other, _) => Part::This(other),
            });
        }
        Self { text, parts }
    }

    /// Returns the literal text with which every matching text begins. The second value is true if
    /// the pattern consists of this text only.
    pub(super) fn beginning(&self) -> (String, bool) {
        let this = |part: &Part| match part {
            Part::This(character) => Some(*character),
            Part::Text | Part::Character => None,
        };
        let beginning: String = self.parts.iter().map_while(this).collect();
        let is_all = self.parts.iter().all(|part| this(part).is_some());
        (beginning, is_all)
    }

    /// Returns true if the text matches the pattern. Calls `step` before each step; an error of
    /// `step` ends the comparison.
    pub(super) fn matches<E>(
        &self,
        text: &str,
        mut step: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        let (mut parts, mut rest) = (self.parts.as_slice(), text.chars());
        // State for backtracking: the parts after the last `%`, and the text where they were tried
        // last.
        let mut again: Option<(&[Part], std::str::Chars<'_>)> = None;
        loop {
            step()?;
            let mut after = rest.clone();
            match (parts.split_first(), after.next()) {
                (Some((Part::Text, others)), _) => {
                    parts = others;
                    again = Some((others, rest.clone()));
                    continue;
                }
                (Some((Part::Character, others)), Some(_)) => {
                    (parts, rest) = (others, after);
                    continue;
                }
                (Some((Part::This(expected), others)), Some(found)) if *expected == found => {
                    (parts, rest) = (others, after);
                    continue;
                }
                (None, None) => return Ok(true),
                // Backtracking would leave even less text for these parts, so the text does not
                // match.
                (Some(_), None) => return Ok(false),
                (_, Some(_)) => {}
            }
            // Backtracks, so that the last `%` matches one more character.
            let Some((others, from)) = &mut again else { return Ok(false) };
            from.next();
            (parts, rest) = (others, from.clone());
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::Text(Cow::Borrowed(&self.text)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn steps(pattern: &str, text: &str) -> (bool, usize) {
        let mut steps = 0;
        let step = || {
            steps += 1;
            Ok::<(), Infallible>(())
        };
        let matches = Pattern::new(pattern.to_owned()).matches(text, step);
        (matches.unwrap_or_else(|never| match never {}), steps)
    }

    #[test]
    fn wildcards_match_and_escaped_ones_are_themselves() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "äö", true),
            ("_", "ä", true),
            ("_", "", false),
            ("a%", "a", true),
            ("%a", "ba", true),
            ("%a", "ab", false),
            ("%ab%ba", "abba", true),
            ("%ab%ba", "aba", false),
            ("a%a", "a", false),
            ("%a_c%", "xxabaacx", true),
            (r"\%", "%", true),
            (r"\%", "a", false),
            (r"\_\%_%", "_%x", true),
            (r"\\%", r"\%", true),
            (r"\\%", r"\\%", false),
            (r"a\b", r"a\b", true),
            (r"\", r"\", true),
        ] {
            assert_eq!(steps(pattern, text).0, matches, "{pattern} {text}");
        }
    }

    #[test]
    fn many_wildcards_take_no_more_steps_than_text_and_pattern_are_long() {
        let text = "a".repeat(500);
        for pattern in [format!("{}%b", "%a".repeat(50)), format!("%{}b%", "a".repeat(50))] {
            let (matches, steps) = steps(&pattern, &text);
            assert!(!matches);
            assert!(steps <= pattern.len() * text.len(), "{steps}");
        }
    }

    #[test]
    fn the_beginning_ends_at_the_first_wildcard() {
        for (pattern, beginning, is_all) in
            [("a.b", "a.b", true), (r"a\_b%c", "a_b", false), ("_a", "", false), ("", "", true)]
        {
            let found = Pattern::new(pattern.to_owned()).beginning();
            assert_eq!(found, (beginning.to_owned(), is_all), "{pattern}");
        }
    }
}
