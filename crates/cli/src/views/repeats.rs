//! Limits repeated lines of output: prints the first few, and counts the others. Pure.

use delivery::time::duration::SECOND_MS;

/// The number of equal consecutive lines that are printed; further equal lines are only counted.
const SHOWN_MAX: u64 = 3;
/// The interval at which a repeated line is printed again, with the count of skipped lines.
const COUNTED_MS: u64 = 10 * SECOND_MS;

/// Counts how often the last printed line has been repeated.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The key that equal lines share; `None` for a line that is always printed.
    key: Option<String>,
    /// The number of consecutive lines with this key.
    seen: u64,
    /// The number of lines that are counted but not reported yet.
    folded: u64,
    shown_ms: u64,
}

/// The decision whether to print the next line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineDecision {
    /// Print the line. If `folded` is not 0, first print that this many lines were skipped.
    Shown { folded: u64 },
    /// Do not print the line, but count it.
    Folded,
}

impl Repeats {
    /// Decides whether to print the next line, which has this key.
    pub(crate) fn next(&mut self, key: Option<String>, at_ms: u64) -> LineDecision {
        let is_same = key.is_some() && key == self.key;
        let is_due = at_ms >= self.shown_ms.saturating_add(COUNTED_MS);
        self.seen = if is_same { self.seen + 1 } else { 1 };
        if is_same && self.seen > SHOWN_MAX && !is_due {
            self.folded += 1;
            return LineDecision::Folded;
        }
        (self.key, self.shown_ms) = (key, at_ms);
        LineDecision::Shown { folded: std::mem::take(&mut self.folded) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_of_the_same_lines_is_counted_until_another_comes_or_time_has_passed() {
        let mut repeats = Repeats::default();
        let mut next = |key: &str, at_ms| repeats.next(Some(key.to_owned()), at_ms);
        let shown = |folded| LineDecision::Shown { folded };
        assert_eq!([0, 1, 2].map(|ms| next("503", ms)), [shown(0), shown(0), shown(0)]);
        assert_eq!([3, 4].map(|ms| next("503", ms)), [LineDecision::Folded, LineDecision::Folded]);
        assert_eq!(next("200", 5), shown(2));
        assert_eq!(next("503", 6), shown(0));
        assert_eq!([7, 8, 9].map(|ms| next("503", ms)), [shown(0), shown(0), LineDecision::Folded]);
        assert_eq!(next("503", 8 + COUNTED_MS), shown(1));
    }

    #[test]
    fn lines_without_a_key_are_all_shown() {
        let mut repeats = Repeats::default();
        for ms in 0..10 {
            assert_eq!(repeats.next(None, ms), LineDecision::Shown { folded: 0 });
        }
    }
}
