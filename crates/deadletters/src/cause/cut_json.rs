//! JSON whose end may be missing, because only the beginning of a response is kept.
//!
//! Separate because this is about the syntax of JSON alone. Pure.
//!
//! Promises: whole JSON is read as it is. Of cut JSON everything before the cut is read, and a text that was cut is kept as far as it goes.
//! A second value has only the elements that are whole.

use serde_json::Value;

/// A value, and whether its end is missing.
pub(super) struct Read {
    pub(super) value: Value,
    /// The value without the element of a list that the cut divides; `None` if it divides no list.
    pub(super) whole: Option<Value>,
    pub(super) is_cut: bool,
}

/// Reads a body; `None` if its beginning is not JSON.
pub(super) fn read(body: &str) -> Option<Read> {
    if !body.starts_with(['{', '[', '"']) {
        return None;
    }
    if let Ok(value) = serde_json::from_str(body) {
        return Some(Read { value, whole: None, is_cut: false });
    }
    // Something may follow a whole value.
    if let Some(Ok(value)) = serde_json::Deserializer::from_str(body).into_iter().next() {
        return Some(Read { value, whole: None, is_cut: false });
    }
    let scan = Scan::of(body);
    let value = scan.repaired(body).find_map(|text| serde_json::from_str(&text).ok())?;
    let whole = scan.whole(body).and_then(|text| serde_json::from_str(&text).ok());
    Some(Read { value, whole, is_cut: true })
}

/// The state of a scanner at the end of a text.
#[derive(Default)]
struct Scan {
    /// The marks that close the open objects and arrays.
    open: Vec<char>,
    is_in_text: bool,
    /// The place of an escape that the cut divides.
    escape: Option<usize>,
    /// The last place where the open objects and arrays could be closed, and the marks that close them.
    complete: (usize, Vec<char>),
    /// The outermost open array by its place in `open`, and the end of its last whole element.
    list: Option<(usize, usize)>,
}

impl Scan {
    fn of(body: &str) -> Self {
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

    /// The body without the divided element of its outermost list.
    fn whole(&self, body: &str) -> Option<String> {
        let (place, end) = self.list?;
        Some(closed(body.get(..end)?, "", self.open.get(..=place)?))
    }

    /// The texts that may be the body with an end, the one that keeps most of it first.
    fn repaired(&self, body: &str) -> impl Iterator<Item = String> {
        let kept = self.escape.and_then(|at| body.get(..at)).unwrap_or(body);
        let mark = if self.is_in_text { "\"" } else { "" };
        let (end, open) = &self.complete;
        let complete = body.get(..*end).unwrap_or_default();
        [closed(kept, mark, &self.open), closed(complete, "", open)].into_iter()
    }
}

/// A text with the marks that close what is open in it.
fn closed(text: &str, mark: &str, open: &[char]) -> String {
    let marks: String = open.iter().rev().collect();
    format!("{text}{mark}{marks}")
}
