//! Where a value occurs in a text: the search of Knuth, Morris and Pratt, which reads each byte once
//! whatever the value repeats, and knows at the end which beginning of the value was just read.

use super::ending::Ending;
use super::view::View;

/// A shorter value is hidden only where it stands alone.
pub const SHORT_BYTES: usize = 4;

/// A value and how to search for it.
#[derive(Clone)]
pub(super) struct Finder {
    /// Its bytes, folded.
    value: Vec<u8>,
    /// For each beginning of it, the longest shorter beginning that this one ends with.
    fallback: Vec<usize>,
}

/// Letters of either case are the same, and so are the two spellings of a space in a query, and control
/// characters, which break a line at a space or are shown as one.
fn folded(byte: u8) -> u8 {
    if byte == b'+' || byte.is_ascii_control() { b' ' } else { byte.to_ascii_lowercase() }
}

impl Finder {
    pub(super) fn new(value: &[u8]) -> Self {
        let value = value.iter().copied().map(folded).collect::<Vec<u8>>();
        let mut finder = Self { fallback: vec![0; value.len()], value };
        let mut matched = 0;
        for at in 1..finder.value.len() {
            matched = finder.advance(matched, finder.value[at]);
            finder.fallback[at] = matched;
        }
        finder
    }

    pub(super) fn is(&self, value: &[u8]) -> bool {
        self.value.iter().copied().eq(value.iter().copied().map(folded))
    }

    pub(super) fn len(&self) -> usize {
        self.value.len()
    }

    /// The longest shorter beginning that the beginning of this length ends with.
    fn shorter(&self, matched: usize) -> usize {
        matched.checked_sub(1).and_then(|last| self.fallback.get(last)).copied().unwrap_or(0)
    }

    /// How much of the value was read, with one more byte.
    fn advance(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.value.get(matched) == Some(&byte) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.shorter(matched);
        }
    }

    /// Adds where the value is in a text, and at the end of a cut one its beginning.
    pub(super) fn search(&self, view: &View, ending: Ending, spans: &mut Spans) {
        let is_found =
            |from: usize, to: usize| self.len() >= SHORT_BYTES || view.is_token(from, to);
        let mut matched = 0;
        for (at, byte) in view.bytes.iter().enumerate() {
            matched = self.advance(matched, folded(*byte));
            if matched == self.len() {
                let from = at + 1 - matched;
                if is_found(from, at + 1)
                    && let (Some((from, _)), Some((_, to))) =
                        (view.spans.get(from), view.spans.get(at))
                {
                    spans.add(*from, *to);
                }
            }
        }
        while ending == Ending::Cut && matched > 0 {
            let from = view.bytes.len() - matched;
            if is_found(from, view.bytes.len())
                && let Some((from, _)) = view.spans.get(from)
            {
                return spans.add(*from, usize::MAX);
            }
            matched = self.shorter(matched);
        }
    }
}

/// Places in a text.
#[derive(Default)]
pub(super) struct Spans(Vec<(usize, usize)>);

impl Spans {
    fn add(&mut self, from: usize, to: usize) {
        match self.0.last_mut() {
            // In the order in which they are found, so that many of them take no room.
            Some(last) if last.0 <= from && from <= last.1 => last.1 = last.1.max(to),
            Some(_) | None => self.0.push((from, to)),
        }
    }

    /// The text with each place replaced, those that touch as one; `None` without any.
    pub(super) fn replace_in(mut self, text: &[u8], with: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_unstable();
        let mut merged = Self::default();
        self.0.into_iter().for_each(|(from, to)| merged.add(from, to));
        let (mut replaced, mut shown_to) = (Vec::with_capacity(text.len()), 0);
        for (from, to) in merged.0 {
            replaced.extend_from_slice(text.get(shown_to..from).unwrap_or_default());
            replaced.extend_from_slice(with);
            shown_to = to;
        }
        replaced.extend_from_slice(text.get(shown_to..).unwrap_or_default());
        Some(replaced)
    }
}
