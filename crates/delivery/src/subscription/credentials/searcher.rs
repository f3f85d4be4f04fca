//! [`Searcher`]: finds the spellings of values in a text with one automaton, in one pass.
//!
//! This module is separate because building an automaton takes milliseconds. It is built once for
//! each set of values and shared. The time of a search is linear in the length of the text.

use std::sync::{Arc, Mutex, PoisonError};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::ending::Ending;
use super::spans::Spans;
use super::spellings::{Depth, Spelling, fold, spellings};

/// Maximum total size in bytes of the spellings of all values.
const SET_MAX_BYTES: usize = 1_024 * 1_024;
/// Maximum total size in bytes of the spellings of one value. Composed encodings need most of it.
const VALUE_MAX_BYTES: usize = 128 * 1_024;
/// Maximum total size of the spellings of a long value, in bytes per byte of the value. All
/// spellings with only one encoding fit.
const BYTE_MAX_BYTES: usize = 256;
/// Number of matching bytes after which a longer spelling counts as found.
pub(super) const ENOUGH_BYTES: usize = 128;
/// Minimum length in bytes of an incomplete encoded value that is hidden at the end of a cut text.
const CUT_MIN_BYTES: usize = 4;
/// Minimum length of a contained value. If a value contains another value of at least this length,
/// the containing value is searched in fewer encodings.
const PART_MIN_BYTES: usize = 8;
/// Maximum total memory in bytes of the cached searchers.
const KEPT_MAX_BYTES: usize = 16 * 1_024 * 1_024;

/// Cache of the searchers for recently used sets of values, newest first.
static KEPT: Mutex<Vec<Arc<Searcher>>> = Mutex::new(Vec::new());

/// Searches texts for all spellings of a set of values.
pub(super) struct Searcher {
    values: Vec<Vec<u8>>,
    /// The spellings, sorted by their bytes for binary search.
    spellings: Vec<Spelling>,
    /// Finds the beginnings of spellings. The pattern with index n belongs to `spellings[n]`.
    automaton: AhoCorasick,
}

impl Searcher {
    /// Builds a searcher that is used for one request only, and is not cached. It covers only
    /// single encodings, because such a searcher is faster to build.
    pub(super) fn of_one_request(values: &[Vec<u8>]) -> Self {
        Self::new(values, Depth::Single, Depth::Plain)
    }

    /// Returns the searcher for these values from the cache, or builds it.
    pub(super) fn kept(values: &[Vec<u8>]) -> Arc<Self> {
        let lock = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &Arc<Self>| kept.values == values;
        let kept = lock().iter().find(|kept| is_same(kept)).cloned();
        // The searcher is built without holding the lock, so that other searches are not blocked.
        let searcher =
            kept.unwrap_or_else(|| Arc::new(Self::new(values, Depth::Composed, Depth::Single)));
        let mut kept = lock();
        kept.retain(|other| !is_same(other));
        kept.insert(0, Arc::clone(&searcher));
        let mut left_bytes = KEPT_MAX_BYTES;
        kept.retain(|other| {
            left_bytes.checked_sub(other.bytes()).inspect(|left| left_bytes = *left).is_some()
        });
        searcher
    }

    /// Returns the size of the spellings and the automaton in bytes. The overhead of lists is not
    /// included.
    fn bytes(&self) -> usize {
        let spellings: usize = self.spellings.iter().map(|spelling| spelling.bytes.len()).sum();
        spellings + self.automaton.memory_usage()
    }

    /// Builds a searcher with spellings up to `depth`. A value that contains another value has
    /// spellings only up to `of_holders`, because the other value is found within it.
    fn new(values: &[Vec<u8>], depth: Depth, of_holders: Depth) -> Self {
        let share = SET_MAX_BYTES / values.len().max(1);
        let of_value = |value: &Vec<u8>| {
            let bytes_max = VALUE_MAX_BYTES.max(BYTE_MAX_BYTES * value.len()).min(share);
            let depth = if holds_another(value, values) { of_holders } else { depth };
            spellings(value, bytes_max, depth)
        };
        let mut spellings: Vec<Spelling> = values.iter().flat_map(of_value).collect();
        spellings.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .prefilter(false)
            .build(spellings.iter().map(Spelling::pattern))
            .expect("the limit on the size of spellings is below the limit of an automaton");
        Self { values: values.to_vec(), spellings, automaton }
    }

    /// Returns the ranges of a text that contain a value in any spelling.
    pub(super) fn search(&self, text: &[u8], ending: Ending) -> Spans {
        let mut spans = Spans::default();
        self.search_view(&View::new(text, |_| 0), ending, &mut spans);
        let joined = View::new(text, break_bytes);
        if joined.bytes.len() < text.len() {
            self.search_view(&joined, ending, &mut spans);
        }
        spans
    }

    fn search_view(&self, view: &View, ending: Ending, spans: &mut Spans) {
        let mut hidden_to = vec![0; self.spellings.len()];
        for found in self.automaton.find_overlapping_iter(&view.bytes) {
            let index = found.pattern().as_usize();
            let (Some(spelling), Some(hidden_to)) =
                (self.spellings.get(index), hidden_to.get_mut(index))
            else {
                continue;
            };
            let from = found.start();
            // A match within an earlier match of the same spelling is skipped.
            if from + ENOUGH_BYTES.min(spelling.bytes.len()) <= *hidden_to {
                continue;
            }
            if let Some(to) = view.end_of(spelling, from) {
                *hidden_to = to;
                view.add(from, to, spans);
            }
        }
        if ending == Ending::Cut {
            self.search_end(view, spans);
        }
    }

    /// Finds a spelling that is incomplete because the text was cut. If at least `ENOUGH_BYTES` of
    /// the spelling remain, it has already been found.
    fn search_end(&self, view: &View, spans: &mut Spans) {
        let length = view.bytes.len();
        for from in length.saturating_sub(ENOUGH_BYTES)..length {
            let end = view.bytes.get(from..).unwrap_or_default();
            let first = self.spellings.partition_point(|spelling| spelling.bytes.as_slice() < end);
            let mut begun = self.spellings.get(first..).into_iter().flatten();
            let mut begun = begun.by_ref().take_while(|spelling| spelling.bytes.starts_with(end));
            let counts = |spelling: &Spelling| {
                (!spelling.is_encoded || end.len() >= CUT_MIN_BYTES)
                    && view.has(spelling, from, length)
            };
            if begun.any(counts) {
                return spans.add(view.place(from), usize::MAX);
            }
        }
    }
}

/// Returns true if a value contains another value of the set.
fn holds_another(value: &[u8], values: &[Vec<u8>]) -> bool {
    let is_part = |other: &Vec<u8>| {
        (PART_MIN_BYTES..value.len()).contains(&other.len())
            && value.windows(other.len()).any(|part| part == other)
    };
    values.iter().any(is_part)
}

/// A text in the form in which the automaton searches it.
struct View {
    /// The bytes of the text after [`fold`], without skipped bytes.
    bytes: Vec<u8>,
    /// The position in the original text of each byte in `bytes`.
    places: Vec<usize>,
}

impl View {
    /// Copies a text without the bytes to skip, and applies [`fold`] to each copied byte.
    /// `left_out` returns how many bytes to skip at the beginning of a slice.
    fn new(text: &[u8], left_out: fn(&[u8]) -> usize) -> Self {
        let mut view = Self { bytes: Vec::with_capacity(text.len()), places: Vec::new() };
        let mut at = 0;
        while let Some(rest @ [byte, ..]) = text.get(at..) {
            match left_out(rest) {
                0 => {
                    view.bytes.push(fold(*byte));
                    view.places.push(at);
                    at += 1;
                }
                bytes => at += bytes,
            }
        }
        view
    }

    fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(usize::MAX)
    }

    fn add(&self, from: usize, to: usize, spans: &mut Spans) {
        if let (from, Some(last)) = (self.place(from), self.places.get(to.saturating_sub(1))) {
            spans.add(from, last + 1);
        }
    }

    /// Returns true if a match counts. A short spelling does not count if a letter or digit is
    /// beside it, or if it belongs to a longer encoded text.
    fn has(&self, spelling: &Spelling, from: usize, to: usize) -> bool {
        let before = from.checked_sub(1).and_then(|at| self.bytes.get(at));
        let is_outside = |beside: &u8| {
            let may_belong = spelling.is_encoded && b":,/\\%;&=".contains(beside);
            beside.is_ascii() && !beside.is_ascii_alphanumeric() && !may_belong
        };
        !spelling.is_short || [before, self.bytes.get(to)].into_iter().flatten().all(is_outside)
    }

    /// Returns the end of a spelling that starts at `from`. For a long spelling it is the end of
    /// the part that matches. Returns `None` if the spelling does not match.
    fn end_of(&self, spelling: &Spelling, from: usize) -> Option<usize> {
        let text = self.bytes.get(from..)?;
        let agreed = spelling.bytes.iter().zip(text).take_while(|(a, b)| a == b).count();
        let is_enough = agreed >= spelling.bytes.len().min(ENOUGH_BYTES);
        let to = from + agreed;
        (is_enough && self.has(spelling, from, to)).then_some(to)
    }
}

/// Returns the length of a line break or control character at the beginning of a text, otherwise
/// zero. Such bytes are skipped: programs wrap base64 lines and omit control characters, and UTF-16
/// has NUL bytes between ASCII characters.
fn break_bytes(text: &[u8]) -> usize {
    let indented = |bytes: usize| {
        let rest = text.get(bytes..).unwrap_or_default();
        bytes + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    };
    match text {
        [b'=', b'\r', b'\n', ..] => 3,
        [b'=', b'\n', ..] | [b'\\', b'n' | b'r', ..] | [0xc2, 0x80..=0x9f, ..] => 2,
        // The text was cut within a line break.
        [b'=' | b'\\'] => 1,
        [b'=', b'\r'] => 2,
        [b'\n', ..] => indented(1),
        [control, ..] if control.is_ascii_control() => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_searcher_is_made_once_for_a_set_of_values() {
        let values = [b"made-once".to_vec(), b"for-both".to_vec()];
        assert!(Arc::ptr_eq(&Searcher::kept(&values), &Searcher::kept(&values)));
        assert!(!Arc::ptr_eq(&Searcher::kept(&values), &Searcher::kept(&values[..1])));
    }

    #[test]
    fn the_spellings_of_many_or_long_values_have_a_bound() {
        let many: Vec<Vec<u8>> = (0..100).map(|n| format!("value+{n}/of many").into()).collect();
        let long = vec![b"0123456789abcdef".repeat(256)];
        for values in [many, long] {
            let searcher = Searcher::new(&values, Depth::Composed, Depth::Single);
            let bytes: usize = searcher.spellings.iter().map(|spelling| spelling.bytes.len()).sum();
            assert!(bytes <= SET_MAX_BYTES, "{bytes}");
            assert!(searcher.bytes() <= 2 * SET_MAX_BYTES, "{}", searcher.bytes());
            for value in &values {
                let encoded = hex::encode(value);
                let found = searcher.search(encoded.as_bytes(), Ending::Whole);
                assert!(found.replace_in(encoded.as_bytes(), b"").is_some(), "{encoded}");
            }
        }
    }
}
