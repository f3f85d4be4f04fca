//! The spellings of a value: as it is, in every encoding, and in up to three encodings on top of each other.
//!
//! Separate because the automaton of [`super::searcher`] needs a list. The list is bounded, so its order decides: what
//! programs do often comes first.
//!
//! Promises: no spelling is there twice. Each is folded as [`fold`] does.

use std::collections::HashSet;

use super::encodings::{PARTS_OF_BASE64, as_lists, common, every};

/// A shorter value is hidden only where it stands alone.
pub const SHORT_BYTES: usize = 4;

/// The longest pattern of the automaton. The rest of a spelling is compared.
const PATTERN_MAX_BYTES: usize = 16;
/// The most spellings of one value.
const SPELLINGS_MAX: usize = 4_096;

/// Maps bytes that the search does not tell apart to one: letters of either case, the two alphabets of base64, and spaces.
pub(super) fn fold(byte: u8) -> u8 {
    match byte {
        b'+' | b'-' => b' ',
        b'_' => b'/',
        control if control.is_ascii_control() => b' ',
        other => other.to_ascii_lowercase(),
    }
}

/// A text to search for.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    /// Folded.
    pub(super) bytes: Vec<u8>,
    /// Its value is shorter than [`SHORT_BYTES`].
    pub(super) is_short: bool,
    /// Not the value itself.
    pub(super) is_encoded: bool,
}

impl Spelling {
    /// The pattern of the automaton: all of it, or the beginning of a long one.
    pub(super) fn pattern(&self) -> &[u8] {
        self.bytes.get(..PATTERN_MAX_BYTES).unwrap_or(&self.bytes)
    }
}

/// How many encodings may be on top of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Only the value itself.
    Plain,
    /// One encoding.
    Single,
    /// Up to three.
    Composed,
}

/// The spellings of a value, of at most so many bytes together.
pub(super) fn spellings(value: &[u8], bytes_max: usize, depth: Depth) -> Vec<Spelling> {
    let is_short = value.len() < SHORT_BYTES;
    let mut list = List { left_bytes: bytes_max, is_short, ..List::default() };
    list.add(&[value.to_vec()], false);
    if depth == Depth::Plain {
        return list.all;
    }
    if is_short {
        // A part of base64 would be shorter still.
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
    /// The spellings of the list, folded.
    folded: HashSet<Vec<u8>>,
    /// Their texts. Two that differ in case only are one spelling, but differ once they are encoded again.
    encoded: HashSet<Vec<u8>>,
    left_bytes: usize,
    is_short: bool,
}

impl List {
    /// Adds what is new, as far as there is room; returns what can be encoded once more, not folded.
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

    /// Adds all that an encoder makes of these texts.
    fn add_encoded(
        &mut self,
        texts: &[Vec<u8>],
        encode: fn(&[u8]) -> Vec<Vec<u8>>,
    ) -> Vec<Vec<u8>> {
        let mut added = Vec::new();
        for text in texts {
            // Not even the text itself would fit once more.
            if self.all.len() == SPELLINGS_MAX || text.len() > self.left_bytes {
                continue;
            }
            added.extend(self.add(&encode(text), true));
        }
        added
    }
}
