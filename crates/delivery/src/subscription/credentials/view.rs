//! [`View`]: a text as its reader could decode it, and where each byte of that came from.
//!
//! Separate because an answer may repeat a credential in any encoding. Searching the decoded texts
//! finds it in every spelling of that encoding: any letters escaped or not, hexadecimal digits in
//! either case, with a separator between their pairs or none, base64 at any alignment, of either
//! alphabet, padded or not, on several lines. Whoever shows a text may leave its control characters out,
//! and UTF-16 has them between its letters, so it is searched without them too.
//!
//! Promises: time and memory are linear in the text. What is no code stands for itself.

use std::iter;

/// A line of base64 is at least this long where it is wrapped: RFC 1421 has 64, RFC 2045 has 76.
const WRAPPED_LINE_MIN_CHARS: usize = 60;
/// Stands between two runs of hexadecimal digits or base64.
const SEPARATOR: u8 = 0;

/// A text, decoded or as it is.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    /// Where each of them begins and ends in the text.
    pub(super) spans: Vec<(usize, usize)>,
    /// Whether the text goes on after its end.
    is_cut: bool,
    form: Form,
}

/// What a view is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text.
    Text,
    /// What whole runs of hexadecimal digits or base64 encode.
    Runs,
    /// The same, read from within each run, or encoded once more.
    PartsOfRuns,
}

/// How many bits a character stands for, and which; what may be between two bytes, once.
type Alphabet = (u32, fn(u8) -> Option<u32>, &'static [u8]);

const HEX: Alphabet = (4, hex_value, b"");
const SEPARATED_HEX: Alphabet = (4, hex_value, b":- ");
const BASE64: Alphabet = (6, base64_value, b"");

impl View {
    /// The text as it is.
    pub(super) fn of(text: &[u8], is_cut: bool) -> Self {
        let spans = (0..text.len()).map(|at| (at, at + 1)).collect();
        Self { bytes: text.to_vec(), spans, is_cut, form: Form::Text }
    }

    /// Every text that it may stand for, one after the other.
    pub(super) fn decoded(&self) -> impl Iterator<Item = Self> {
        let escapes: [(u8, Unescape); 3] =
            [(b'\\', json_escape), (b'%', percent_escape), (b'&', html_escape)];
        let escapes =
            escapes.into_iter().filter_map(|(begin, escape)| self.unescaped(begin, escape));
        let controls = iter::once_with(|| self.without_controls()).flatten();
        let separated_hex = iter::once_with(|| self.unpacked(SEPARATED_HEX, 0)).flatten();
        let hex = (0..2).filter_map(|shift| self.unpacked(HEX, shift));
        let base64 = (0..4).filter_map(|shift| self.unpacked(BASE64, shift));
        escapes.chain(controls).chain(separated_hex).chain(hex).chain(base64)
    }

    /// Whether these bytes are a token: no letter or digit is beside them. Of what runs encode it has to
    /// be all, since much of that looks like anything by chance.
    pub(super) fn is_token(&self, from: usize, to: usize) -> bool {
        let before = from.checked_sub(1).and_then(|at| self.bytes.get(at));
        let ends = |beside: &u8| match self.form {
            Form::Text => beside.is_ascii() && !beside.is_ascii_alphanumeric(),
            Form::Runs | Form::PartsOfRuns => *beside == SEPARATOR,
        };
        self.form != Form::PartsOfRuns
            && [before, self.bytes.get(to)].into_iter().flatten().all(ends)
    }

    fn empty(&self, form: Form) -> Self {
        Self { bytes: Vec::new(), spans: Vec::new(), is_cut: self.is_cut, form }
    }

    fn push(&mut self, byte: u8, span: (usize, usize)) {
        self.bytes.push(byte);
        self.spans.push(span);
    }

    /// Without its control characters; `None` if it has none. They separate runs, too.
    fn without_controls(&self) -> Option<Self> {
        let (mut view, mut at) = (self.empty(self.form), 0);
        while let (Some(byte), Some(span)) = (self.bytes.get(at), self.spans.get(at)) {
            match self.bytes.get(at..) {
                Some([0xc2, 0x80..=0x9f, ..]) => at += 2,
                Some([control, ..]) if control.is_ascii_control() => at += 1,
                Some(_) | None => {
                    view.push(*byte, *span);
                    at += 1;
                }
            }
        }
        (view.bytes.len() < self.bytes.len()).then_some(view)
    }

    /// With each escape that begins with this byte replaced by what it stands for; `None` without any.
    fn unescaped(&self, begin: u8, escape: Unescape) -> Option<Self> {
        if !self.bytes.contains(&begin) {
            return None;
        }
        let mut view = self.empty(self.form);
        let mut at = 0;
        while let (Some(byte), Some(span)) = (self.bytes.get(at), self.spans.get(at)) {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let found = if *byte == begin { escape(rest) } else { Escape::None };
            match found {
                Escape::Of(character, length) => {
                    let end = self.spans.get(at + length - 1).map_or(span.1, |last| last.1);
                    character.bytes().for_each(|byte| view.push(byte, (span.0, end)));
                    at += length;
                }
                // Its rest was cut off.
                Escape::Incomplete if self.is_cut => break,
                Escape::Incomplete | Escape::None => {
                    view.push(*byte, *span);
                    at += 1;
                }
            }
        }
        Some(view)
    }

    /// What runs of this alphabet encode, read from this character of each run on; `None` if they
    /// encode nothing.
    fn unpacked(&self, (bits, value, separators): Alphabet, shift: usize) -> Option<Self> {
        let is_whole = shift == 0 && self.form == Form::Text;
        let mut view = self.empty(if is_whole { Form::Runs } else { Form::PartsOfRuns });
        let mut run = Run::default();
        for (byte, span) in iter::zip(&self.bytes, &self.spans) {
            match value(*byte) {
                Some(value) => {
                    run.count();
                    if run.chars > shift {
                        let found = run.take(value, bits, *span);
                        found.into_iter().for_each(|(byte, span)| view.push(byte, span));
                    }
                }
                None if run.is_wrapped_by(*byte) => run.is_at_line_break = true,
                None if run.is_between_bytes() && separators.contains(byte) => {
                    run.is_at_separator = true;
                }
                None => {
                    if run.chars > 0 {
                        view.push(SEPARATOR, (span.0, span.0));
                    }
                    run = Run::default();
                }
            }
        }
        view.spans.iter().any(|(from, to)| from < to).then_some(view)
    }
}

/// The characters of one alphabet in a row.
#[derive(Default)]
struct Run {
    /// How many so far.
    chars: usize,
    /// How many of them in this line.
    line_chars: usize,
    is_at_line_break: bool,
    is_at_separator: bool,
    /// Bits that make no byte yet, and how many.
    pool: u32,
    pool_bits: u32,
    /// Where the first of them was read.
    start: usize,
}

impl Run {
    fn count(&mut self) {
        if std::mem::take(&mut self.is_at_line_break) {
            self.line_chars = 0;
        }
        self.is_at_separator = false;
        self.chars += 1;
        self.line_chars += 1;
    }

    fn is_wrapped_by(&self, byte: u8) -> bool {
        let is_indent = self.is_at_line_break && matches!(byte, b' ' | b'\t');
        is_indent || (matches!(byte, b'\r' | b'\n') && self.line_chars >= WRAPPED_LINE_MIN_CHARS)
    }

    /// Whether a separator may come: a byte is complete, and there was none after it.
    fn is_between_bytes(&self) -> bool {
        self.chars > 0 && self.pool_bits == 0 && !self.is_at_separator
    }

    /// Adds the bits of a character; the byte that is complete with them.
    fn take(
        &mut self,
        value: u32,
        bits: u32,
        span: (usize, usize),
    ) -> Option<(u8, (usize, usize))> {
        if self.pool_bits == 0 {
            self.start = span.0;
        }
        self.pool = self.pool << bits | value;
        self.pool_bits += bits;
        let left_bits = self.pool_bits.checked_sub(8)?;
        let byte = u8::try_from(self.pool >> left_bits).ok()?;
        self.pool &= (1 << left_bits) - 1;
        self.pool_bits = left_bits;
        let from = std::mem::replace(&mut self.start, span.0);
        Some((byte, (from, span.1)))
    }
}

fn hex_value(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// The value of a character in base64, of the standard or the URL-safe alphabet (RFC 4648).
fn base64_value(byte: u8) -> Option<u32> {
    let (first, value) = match byte {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'+' | b'-' => (byte, 62),
        b'/' | b'_' => (byte, 63),
        _ => return None,
    };
    Some(u32::from(byte - first) + value)
}

/// What a text stands for that begins with an escape character.
type Unescape = fn(&[u8]) -> Escape;

/// What begins at an escape character.
enum Escape {
    /// These bytes, in so many bytes of the text.
    Of(Decoded, usize),
    /// Perhaps an escape: the text ends within it.
    Incomplete,
    /// No escape.
    None,
}

/// What an escape stands for.
enum Decoded {
    Byte(u8),
    Character(char),
}

impl Decoded {
    fn bytes(self) -> impl Iterator<Item = u8> {
        let mut buffer = [0; 4];
        let length = match self {
            Self::Byte(byte) => {
                buffer[0] = byte;
                1
            }
            Self::Character(character) => character.encode_utf8(&mut buffer).len(),
        };
        buffer.into_iter().take(length)
    }
}

/// `%2F` or `%2f` (RFC 3986, 2.1).
fn percent_escape(rest: &[u8]) -> Escape {
    match hex_number(rest, 1..3) {
        Ok(Some(number)) => match u8::try_from(number) {
            Ok(byte) => Escape::Of(Decoded::Byte(byte), 3),
            Err(_) => Escape::None,
        },
        Ok(None) => Escape::None,
        Err(Incomplete) => Escape::Incomplete,
    }
}

/// The characters that HTML has to escape, by name.
const HTML_NAMES: [(&[u8], u8); 5] =
    [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
/// The longest number of a character: `&#x0010FFFF;` with the zeros that some write.
const HTML_NUMBER_MAX: usize = 12;

/// `&amp;`, `&#43;` or `&#x2B;` (HTML, character references).
fn html_escape(rest: &[u8]) -> Escape {
    for (name, byte) in HTML_NAMES {
        if rest.starts_with(name) {
            return Escape::Of(Decoded::Byte(byte), name.len());
        }
        if name.starts_with(rest) {
            return Escape::Incomplete;
        }
    }
    let (radix, digits) = match rest {
        [b'&', b'#', b'x' | b'X', digits @ ..] => (16, digits),
        [b'&', b'#', digits @ ..] => (10, digits),
        _ => return Escape::None,
    };
    let begin = rest.len() - digits.len();
    let mut number: u32 = 0;
    for (at, byte) in digits.iter().take(HTML_NUMBER_MAX).enumerate() {
        match char::from(*byte).to_digit(radix) {
            Some(digit) => number = number.saturating_mul(radix).saturating_add(digit),
            None if *byte == b';' && at > 0 => {
                let character = char::from_u32(number).map(Decoded::Character);
                return character.map_or(Escape::None, |of| Escape::Of(of, begin + at + 1));
            }
            None => return Escape::None,
        }
    }
    if digits.len() < HTML_NUMBER_MAX { Escape::Incomplete } else { Escape::None }
}

/// `\n`, `\/`, `\u00e9` or a pair of surrogates (RFC 8259, 7).
fn json_escape(rest: &[u8]) -> Escape {
    let byte = match rest.get(1) {
        None => return Escape::Incomplete,
        Some(b'u') => return unicode_escape(rest),
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(same @ (b'"' | b'\\' | b'/')) => *same,
        Some(_) => return Escape::None,
    };
    Escape::Of(Decoded::Byte(byte), 2)
}

fn unicode_escape(rest: &[u8]) -> Escape {
    let unit = |range| hex_number(rest, range);
    let first = match unit(2..6) {
        Ok(Some(first)) => first,
        Ok(None) => return Escape::None,
        Err(Incomplete) => return Escape::Incomplete,
    };
    if let Some(character) = char::from_u32(first) {
        return Escape::Of(Decoded::Character(character), 6);
    }
    match unit(8..12) {
        Ok(Some(second)) => {
            let units = [first, second].map(|unit| u16::try_from(unit).unwrap_or_default());
            match char::decode_utf16(units).next() {
                Some(Ok(character)) => Escape::Of(Decoded::Character(character), 12),
                Some(Err(_)) | None => Escape::None,
            }
        }
        Ok(None) => Escape::None,
        Err(Incomplete) => Escape::Incomplete,
    }
}

/// The text ends within a number.
struct Incomplete;

/// The hexadecimal number at this place; `None` where other characters are.
fn hex_number(text: &[u8], at: std::ops::Range<usize>) -> Result<Option<u32>, Incomplete> {
    let mut number = 0;
    for index in at {
        let byte = text.get(index).ok_or(Incomplete)?;
        let Some(digit) = char::from(*byte).to_digit(16) else { return Ok(None) };
        number = number << 4 | digit;
    }
    Ok(Some(number))
}
