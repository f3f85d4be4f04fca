//! Reads JSON whose end may be missing, because dead letters keep only the beginning of a response.
//!
//! Separate because this module only handles JSON syntax. Pure.
//!
//! Promises: complete JSON is read unchanged. Cut JSON is read up to the cut, including the string
//! that the cut divides. If the cut divides a list, a second value (`whole`) omits the
//! incomplete element.

use serde_json::Value;

pub(super) struct Read {
    pub(super) value: Value,
    /// The value without the list element that the cut divides; `None` if the cut divides no list.
    pub(super) whole: Option<Value>,
    pub(super) is_cut: bool,
}

/// Reads the JSON value of a body; `None` if the body does not begin with JSON.
pub(super) fn read(body: &str) -> Option<Read> {
    if !body.starts_with(['{', '[', '"']) {
        return None;
    }
    if let Ok(value) = serde_json::from_str(body) {
        return Some(Read { value, whole: None, is_cut: false });
    }
    // Other text may follow a complete value.
    if let Some(Ok(value)) = serde_json::Deserializer::from_str(body).into_iter().next() {
        return Some(Read { value, whole: None, is_cut: false });
    }
    let scan = Scan::new(body);
    let value = scan.repaired(body).find_map(|text| serde_json::from_str(&text).ok())?;
    let whole = scan.whole(body).and_then(|text| serde_json::from_str(&text).ok());
    Some(Read { value, whole, is_cut: true })
}

/// The state of the JSON scanner at the end of a text.
#[derive(Default)]
struct Scan {
    /// The closing brackets for all open objects and arrays.
    open: Vec<char>,
    is_in_text: bool,
    /// The offset of an escape sequence that the cut divides, if any.
    escape: Option<usize>,
    /// The last offset at which the open objects and arrays could be closed, with their closing
    /// brackets.
    complete: (usize, Vec<char>),
    /// The outermost open array: its index in `open`, and the end of its last complete element.
    list: Option<(usize, usize)>,
}

impl Scan {
    fn new(body: &str) -> Self {
        let mut scan = Self::default();
        let mut characters = body.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' if scan.is_in_text => {
                    let escaped = characters.next();
                    let digits = if escaped.is_some_and(|(_, c)| c == 'u') { 4 } else { 0 };
                    let is_whole =
                        escaped.is_some() && (0..digits).all(|_| characters.next().is_some());
                    scan.escape = (!is_whole).then_some(at);
                }
                '"' => scan.is_in_text = !scan.is_in_text,
                _ if scan.is_in_text => {}
                '{' | '[' => {
                    scan.open.push(if c == '{' { '}' } else { ']' });
                    scan.complete = (at + 1, scan.open.clone());
                    if c == '[' && scan.list.is_none() {
                        scan.list = Some((scan.open.len() - 1, at + 1));
                    }
                }
                '}' | ']' => {
                    scan.open.pop();
                    scan.complete = (at + 1, scan.open.clone());
                    scan.list = scan.list.filter(|(place, _)| *place < scan.open.len());
                }
                ',' => {
                    scan.complete = (at, scan.open.clone());
                    let is_in_list = |place: usize| place + 1 == scan.open.len();
                    scan.list = scan
                        .list
                        .map(|(place, end)| (place, if is_in_list(place) { at } else { end }));
                }
                _ => {}
            }
        }
        scan
    }

    /// Returns the body, but omits the incomplete element of its outermost list. Returns `None` if
    /// the cut divides no list.
    fn whole(&self, body: &str) -> Option<String> {
        let (place, end) = self.list?;
        Some(closed(body.get(..end)?, "", self.open.get(..=place)?))
    }

    /// Returns possible completions of the body. The completion that keeps most of the body comes
    /// first.
    fn repaired(&self, body: &str) -> impl Iterator<Item = String> {
        let kept = self.escape.and_then(|at| body.get(..at)).unwrap_or(body);
        let mark = if self.is_in_text { "\"" } else { "" };
        let (end, open) = &self.complete;
        let complete = body.get(..*end).unwrap_or_default();
        [closed(kept, mark, &self.open), closed(complete, "", open)].into_iter()
    }
}

/// Appends `mark` and the closing brackets in `open` to a text.
fn closed(text: &str, mark: &str, open: &[char]) -> String {
    let marks: String = open.iter().rev().collect();
    format!("{text}{mark}{marks}")
}
