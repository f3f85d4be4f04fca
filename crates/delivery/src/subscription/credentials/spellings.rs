//! Lists the spellings of a value: unencoded, in every known encoding, and in up to three encodings
//! applied one after the other.
//!
//! This module is separate because the automaton of [`super::searcher`] needs a bounded list.
//! Common spellings come first, so that the bound cuts rare ones. The list has no duplicates. Each
//! spelling is case-folded with [`fold`].

use std::collections::HashSet;

use super::encodings::{PARTS_OF_BASE64, as_lists, common, every};

/// Length in bytes below which a value counts as short. A short value is hidden only if no letter
/// or digit is beside it.
pub const SHORT_BYTES: usize = 4;

/// Maximum length of a pattern in the automaton. The rest of a longer spelling is compared byte by
/// byte.
const PATTERN_MAX_BYTES: usize = 16;
/// Maximum number of spellings of one value.
const SPELLINGS_MAX: usize = 4_096;

/// Returns the byte that represents all bytes that the search treats as equal:
/// - a letter in upper and in lower case;
/// - `/` and `_`, which differ in the two base64 alphabets;
/// - `+`, `-`, the space and control characters.
pub(super) fn fold(byte: u8) -> u8 {
    match byte {
        b'+' | b'-' => b' ',
        b'_' => b'/',
        control if control.is_ascii_control() => b' ',
        other => other.to_ascii_lowercase(),
    }
}

/// A text for which the search looks: a value, or an encoding of it.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    /// The bytes of the text after [`fold`].
    pub(super) bytes: Vec<u8>,
    /// True if the value is shorter than [`SHORT_BYTES`], even if the spelling is longer.
    pub(super) is_short: bool,
    /// True if the text is an encoding of the value, and not the value itself.
    pub(super) is_encoded: bool,
}

impl Spelling {
    /// Returns the pattern for the automaton: the spelling, or the first bytes of a long one.
    pub(super) fn pattern(&self) -> &[u8] {
        self.bytes.get(..PATTERN_MAX_BYTES).unwrap_or(&self.bytes)
    }
}

/// The maximum number of encodings that are applied one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Only the value itself, without encodings.
    Plain,
    /// The value itself, and each encoding of it.
    Single,
    /// The value itself, and up to three encodings applied one after the other.
    Composed,
}

/// Returns the case-folded spellings of a value, up to a total size in bytes.
pub(super) fn spellings(value: &[u8], bytes_max: usize, depth: Depth) -> Vec<Spelling> {
    let is_short = value.len() < SHORT_BYTES;
    let mut list = List { left_bytes: bytes_max, is_short, ..List::default() };
    list.add(&[value.to_vec()], false);
    if depth == Depth::Plain {
        return list.all;
    }
    if is_short {
        // Parts of base64 texts are left out: they would be even shorter than the value.
        list.add(every(value).get(PARTS_OF_BASE64..).unwrap_or_default(), true);
        return list.all;
    }
    let often = list.add(&common(value), true);
    let once = list.add(&every(value), true);
    if depth == Depth::Composed {
        let often_twice = list.add_encoded(&often, common);
        list.add_encoded(&often_twice, common);
        list.add_encoded(&often, as_lists);
        let twice = list.add_encoded(&once, common);
        list.add_encoded(&twice, common);
    }
    list.all
}

#[derive(Default)]
struct List {
    all: Vec<Spelling>,
    /// The case-folded spellings so far, to find duplicates.
    folded: HashSet<Vec<u8>>,
    /// The unfolded spellings so far, to find duplicates before they are encoded again. Spellings
    /// that differ only in case are equal after folding, but their encodings differ.
    encoded: HashSet<Vec<u8>>,
    left_bytes: usize,
    is_short: bool,
}

impl List {
    /// Adds texts that are not in the list yet, until a limit is reached. Returns the added texts
    /// unfolded, because they may be encoded again.
    fn add(&mut self, texts: &[Vec<u8>], is_encoded: bool) -> Vec<Vec<u8>> {
        let min_bytes = if is_encoded && !self.is_short { SHORT_BYTES } else { 1 };
        let mut added = Vec::new();
        for text in texts {
            let bytes: Vec<u8> = text.iter().copied().map(fold).collect();
            let fits = self.all.len() < SPELLINGS_MAX && bytes.len() <= self.left_bytes;
            if !fits || bytes.len() < min_bytes || !self.encoded.insert(text.clone()) {
                continue;
            }
            added.push(text.clone());
            if self.folded.insert(bytes.clone()) {
                self.left_bytes -= bytes.len();
                self.all.push(Spelling { bytes, is_short: self.is_short, is_encoded });
            }
        }
        added
    }

    /// Encodes each of these texts with an encoder, and adds the results.
    fn add_encoded(
        &mut self,
        texts: &[Vec<u8>],
        encode: fn(&[u8]) -> Vec<Vec<u8>>,
    ) -> Vec<Vec<u8>> {
        let mut added = Vec::new();
        for text in texts {
            // Skips texts whose encodings would exceed the limit: they are at least as long as the
            // text.
            if self.all.len() == SPELLINGS_MAX || text.len() > self.left_bytes {
                continue;
            }
            added.extend(self.add(&encode(text), true));
        }
        added
    }
}
