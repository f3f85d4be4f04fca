//! [`Spans`]: byte ranges of a text, and their replacement.

/// Byte ranges of a text. Each is a start and an exclusive end.
#[derive(Default)]
pub(super) struct Spans(Vec<(usize, usize)>);

impl Spans {
    /// Adds the range from `from` up to, but not including, `to`.
    pub(super) fn add(&mut self, from: usize, to: usize) {
        match self.0.last_mut() {
            // Extends the previous range if the new one starts within it. A text with many
            // overlapping ranges then needs little memory.
            Some(last) if last.0 <= from && from <= last.1 => last.1 = last.1.max(to),
            Some(_) | None => self.0.push((from, to)),
        }
    }

    /// Returns the text with each range replaced by `with`. Ranges that touch are replaced
    /// together. Returns `None` if there are no ranges.
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
