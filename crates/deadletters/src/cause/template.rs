//! Replaces varying parts of texts with placeholders: ids, numbers, times, durations and addresses.
//!
//! Separate because these rules are about text in general, from any source. Pure.
//!
//! Promises: texts that differ only in varying parts have the same [`identity`]. The template of a
//! template is the template itself. A template has at most [`TEMPLATE_MAX_CHARS`] characters.
//! Anything that resembles a word is kept, such as a name or a random id without digits. Quoted
//! identifiers are kept, because most of them name fields; [`super::quotes`] has the rule. Ports of
//! services and codes at the beginning of a text are kept, because different ones mean different
//! causes.

use std::net::SocketAddr;

use super::kinds::{is_code, is_port, placeholder};
use super::quotes::quoted;
use super::word::{Varies, Word, is_unit_of_time};

/// Maximum length of a template; longer ones are cut. A template has to be recognizable, not
/// complete.
pub(super) const TEMPLATE_MAX_CHARS: usize = 160;
/// Maximum number of characters of a text that are read. Titles rarely show more.
const TEXT_MAX_CHARS: usize = 768;
/// Maximum number of passes over a template. One pass is nearly always enough.
const PASSES_MAX: usize = 16;

pub(super) const ID: &str = "<id>";
pub(super) const NUMBER: &str = "<number>";
pub(super) const VALUE: &str = "<value>";
/// Replacement for the query of a URL, which may contain a secret.
pub(super) const HIDDEN_QUERY: &str = "?…";
pub(super) const TIME: &str = "<time>";
pub(super) const DURATION: &str = "<duration>";
pub(super) const EMAIL: &str = "<email>";
pub(super) const ADDRESS: &str = "<address>";
pub(super) const PLACEHOLDERS: [&str; 8] =
    [ID, NUMBER, VALUE, TIME, DURATION, EMAIL, ADDRESS, HIDDEN_QUERY];

/// Maximum length of an error code that is kept. Parts of a longer code become placeholders.
const CODE_MAX_CHARS: usize = 60;
/// Maximum number of digits in a code, such as ORA-00942.
pub(super) const CODE_MAX_DIGITS: usize = 5;
/// Words before a code. A number after one of these words is part of the cause: `error 1062`,
/// `ORA-00942`, `status code: 409`.
const BEFORE_CODES: [&str; 9] =
    ["error", "errno", "err", "ora", "sqlstate", "status", "http", "code", "exception"];
/// Words before `code`. A number after `code` is an error code only if one of these words precedes
/// `code`. The number in `postal code 12345` is data.
const BEFORE_CODE: [&str; 5] = ["error", "status", "exit", "result", "reason"];

/// Maximum number of capitals before the number of an id. `FG-2210` begins with two.
const PREFIX_MAX_CHARS: usize = 4;
/// Minimum number of digits in an id that begins with capitals, such as `FG-2210`.
const SERIAL_MIN_DIGITS: usize = 3;
/// Capitals that name a standard or an algorithm, not an id: `ISO-8601`, `SHA-256`.
const STANDARDS: [&str; 5] = ["ISO", "RFC", "SHA", "AES", "IEC"];

/// Characters that may join the parts of one id, number or time.
const JOINTS: [char; 7] = ['-', '.', '_', ':', '/', '+', ','];
/// Characters that may delimit a part that consists entirely of an id, a time or an address.
const SEPARATORS: [char; 9] = [':', '/', '@', '=', '?', '&', '#', '+', '~'];

/// Prepares a text: cuts it to [`TEXT_MAX_CHARS`], joins the lines, and replaces `µs` with
/// `us`.
pub(super) fn normalized(text: &str) -> String {
    let text: String = text.chars().take(TEXT_MAX_CHARS).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("µs", "us").replace("μs", "us")
}

/// Returns the template of a text, with placeholders for all varying parts.
pub(super) fn generalize(text: &str) -> String {
    let mut template = normalized(text);
    // Repeat, because a replaced part may have hidden another, for example the end of a quotation.
    for _ in 0..PASSES_MAX {
        let next = cut(pass(&template), TEMPLATE_MAX_CHARS);
        if next == template {
            break;
        }
        template = next;
    }
    template
}

/// Returns the template in the form in which it is compared. Ids and numbers are treated as equal,
/// because an id may consist of digits only.
pub(super) fn identity(template: &str) -> String {
    template.replace(NUMBER, ID)
}

/// Returns the template of an error code: the code itself, unless it contains an id.
pub(super) fn of_code(code: &str) -> String {
    let is_part = |part: &str| part.len() <= CODE_MAX_DIGITS || Word::new(part).varies.is_none();
    let is_code = code.len() <= CODE_MAX_CHARS
        && code.chars().all(|c| c.is_ascii_graphic())
        && code.split(|c: char| !c.is_ascii_alphanumeric()).all(is_part);
    if is_code { code.to_owned() } else { generalize(code) }
}

/// Returns the template of one segment of a field path. An index becomes the placeholder for a
/// number.
pub(super) fn of_segment(segment: &str) -> String {
    generalize(&segment.replace(' ', "_"))
}

/// Cuts a text to at most `max_chars`, including the ellipsis that marks the cut.
pub(super) fn cut(text: String, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text,
        Some(_) => text.chars().take(max_chars - 1).chain(['…']).collect(),
    }
}

fn pass(text: &str) -> String {
    let mut template = Template(String::with_capacity(text.len()));
    let mut rest = text.trim();
    // Quoted names of members do not vary.
    let is_json = rest.starts_with(['{', '[']);
    while let Some(first) = rest.chars().next() {
        let after = if let Some((kept, after)) = read_quoted(&template.0, rest, is_json) {
            template.0.push_str(&kept);
            after
        } else if is_in_chunk(first) {
            let after = rest.trim_start_matches(is_in_chunk);
            let chunk = rest.strip_suffix(after).unwrap_or(rest);
            template.add_chunk(chunk, after);
            after
        } else if first.is_whitespace() {
            template.0.push(' ');
            rest.trim_start()
        } else {
            template.0.push(first);
            rest.strip_prefix(first).unwrap_or_default()
        };
        rest = after;
    }
    template.0
}

/// Returns the replacement of a quoted part, and the text after that part. `is_json` is true within
/// JSON, where names of members are kept.
fn read_quoted<'a>(before: &str, text: &'a str, is_json: bool) -> Option<(String, &'a str)> {
    let quoted = quoted(before, text)?;
    let is_member = is_json && quoted.after.starts_with(':');
    let kept = if is_member { Some(quoted.whole.to_owned()) } else { quoted.name() };
    Some((kept.unwrap_or_else(|| VALUE.to_owned()), quoted.after))
}

/// True if the character can be part of an id, a number, a time, an address or a URL.
fn is_in_chunk(c: char) -> bool {
    c.is_ascii_alphanumeric() || SEPARATORS.contains(&c) || matches!(c, '-' | '_' | '.' | '%')
}

/// The template of the text that was read so far.
struct Template(String);

impl Template {
    /// Adds a part of the text that contains no spaces or quotation marks. `after` is the rest of
    /// the text.
    fn add_chunk(&mut self, chunk: &str, after: &str) {
        let part = chunk.trim_end_matches(['.', ':', '?', '-']);
        if chunk.ends_with(':') && self.is_at_begin() && is_code(part) {
            return self.0.push_str(chunk);
        }
        if is_unit_of_time(part) && self.put_unit() {
            self.0.push_str(chunk.strip_prefix(part).unwrap_or_default());
            return;
        }
        if self.0.ends_with("with ")
            && let Some((name, value)) = part.split_once('=')
            && !value.is_empty()
            && !BEFORE_CODE.contains(&name)
        {
            // The value of `Object with code=shoe does not exist` varies, that of `exited with
            // status=failed` does not.
            self.0.extend([name, "=", VALUE, chunk.strip_prefix(part).unwrap_or_default()]);
            return;
        }
        let is_url = part.contains("://") || part.starts_with('/');
        if is_of_date(part) && (self.ends_with_number() || begins_with_number(after)) {
            self.put_month();
        } else if matches!(part, "AM" | "PM" | "GMT" | "UTC") && self.0.trim_end().ends_with(TIME) {
            self.0.truncate(self.0.trim_end().len());
        } else if let Some((path, _)) = part.split_once('?').filter(|_| is_url) {
            self.add_part(path);
            self.0.push_str(HIDDEN_QUERY);
        } else {
            self.add_part(part);
        }
        self.0.push_str(chunk.strip_prefix(part).unwrap_or_default());
    }

    /// Adds a part of the text, with placeholders for the pieces that vary.
    fn add_part(&mut self, part: &str) {
        let mut rest = part;
        loop {
            if let Some(placeholder) = placeholder(rest) {
                self.put(placeholder);
                return self.put_port(rest);
            }
            if is_port(rest) && self.ends_with_host() {
                return self.0.push_str(rest);
            }
            let Some(at) = rest.find(SEPARATORS) else { return self.add_words(rest) };
            let (part, separated) = rest.split_at(at);
            match placeholder(part) {
                Some(placeholder) => self.put(placeholder),
                None => self.add_words(part),
            }
            let mut separated = separated.chars();
            self.0.extend(separated.next());
            rest = separated.as_str();
        }
    }

    fn add_words(&mut self, text: &str) {
        for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let Word { name, varies, unit } = Word::new(word);
            self.0.push_str(name);
            match varies {
                Some(Varies::Number) if name.is_empty() && self.is_code(word) => {
                    self.0.push_str(word.strip_suffix(unit).unwrap_or(word));
                }
                Some(Varies::Number) if word.len() >= SERIAL_MIN_DIGITS && self.drop_prefix() => {
                    self.put(ID);
                }
                Some(Varies::Number) => self.put(NUMBER),
                Some(Varies::Id) => self.put(ID),
                None => {}
            }
            if varies.is_none() || !is_unit_of_time(unit) || !self.put_unit() {
                self.0.push_str(unit);
            }
            self.0.push_str(part.strip_prefix(word).unwrap_or_default());
        }
    }

    /// Adds the port of a service after its address.
    fn put_port(&mut self, part: &str) {
        let port = part.parse::<SocketAddr>().ok().map(|address| address.port().to_string());
        if let Some(port) = port.filter(|port| is_port(port)) {
            self.0.push(':');
            self.0.push_str(&port);
        }
    }

    /// True if the template ends with a host and a colon: `<address>:`, `db.internal:`.
    fn ends_with_host(&self) -> bool {
        let Some(before) = self.0.strip_suffix(':') else { return false };
        let is_of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let begin = before.trim_end_matches(is_of_host).len();
        let host = before.get(begin..).unwrap_or_default();
        before.ends_with(ADDRESS)
            || before.ends_with(']')
            || host == "localhost"
            || host.contains('.') && host.ends_with(|c: char| c.is_ascii_alphabetic())
    }

    /// True at the beginning of the text, and after `| ` as in titles of web pages.
    fn is_at_begin(&self) -> bool {
        self.0.is_empty() || self.0.ends_with("| ")
    }

    /// True if `number` is an error code, by its length and the words before it.
    fn is_code(&self, number: &str) -> bool {
        let is_joint = |c: char| !c.is_alphanumeric() && c != '>';
        let before = self.0.trim_end_matches(is_joint);
        let mut words = before.rsplit(|c: char| !c.is_alphanumeric());
        let mut last = || words.next().unwrap_or_default().to_ascii_lowercase();
        let (word, earlier) = (last(), last());
        let gap = self.0.len() - before.len();
        number.len() <= CODE_MAX_DIGITS
            && number.chars().all(|c| c.is_ascii_digit())
            && (gap == 1 || gap == 2 && matches!(word.as_str(), "code" | "status"))
            && BEFORE_CODES.contains(&word.as_str())
            && (word != "code" || BEFORE_CODE.contains(&earlier.as_str()))
    }

    /// Adds a placeholder, unless the text already ends with a placeholder that covers the new
    /// part.
    fn put(&mut self, placeholder: &str) {
        match placeholder {
            TIME => return self.put_time(),
            ID | NUMBER => {}
            other => return self.0.push_str(other),
        }
        self.drop_sign();
        let joined = self.0.strip_suffix(JOINTS).unwrap_or(&self.0);
        // Groups of one long number: `1 234 567`.
        let joined =
            joined.strip_suffix(' ').filter(|text| text.ends_with(NUMBER)).unwrap_or(joined);
        let beside = joined.trim_end_matches([' ', ',']);
        if joined.ends_with(ID) {
            self.0.truncate(joined.len());
        } else if let Some(before) = joined.strip_suffix(NUMBER) {
            self.0.truncate(before.len());
            self.0.push_str(placeholder);
        } else if beside.ends_with(TIME) {
            self.0.truncate(beside.len());
        } else {
            self.0.push_str(placeholder);
        }
    }

    /// Drops the capitals and the hyphen of an id such as `FG-2210`, because they vary too. Returns
    /// false and keeps them at the beginning of a text, after a bracket, after a word of
    /// `BEFORE_CODES`, and for `STANDARDS`.
    fn drop_prefix(&mut self) -> bool {
        let Some(joined) = self.0.strip_suffix('-') else { return false };
        let before = joined.trim_end_matches(|c: char| c.is_ascii_uppercase());
        let prefix = joined.strip_prefix(before).unwrap_or_default();
        let word = before.trim_end().rsplit(' ').next().unwrap_or_default().to_ascii_lowercase();
        let is_prefix = (1..=PREFIX_MAX_CHARS).contains(&prefix.len())
            && before.ends_with(' ')
            && !STANDARDS.contains(&prefix)
            && !BEFORE_CODES.contains(&word.trim_end_matches(':'));
        if is_prefix {
            self.0.truncate(before.len());
        }
        is_prefix
    }

    /// Drops the sign of a number, because `-3` and `3` must have one template.
    fn drop_sign(&mut self) {
        let Some(before) = self.0.strip_suffix(['-', '+']) else { return };
        if !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '>' | '-' | '+')) {
            self.0.truncate(before.len());
        }
    }

    /// Turns the number at the end of the template into a duration. Returns false if the template
    /// does not end with a number.
    fn put_unit(&mut self) -> bool {
        let Some(before) = self.0.trim_end_matches(' ').strip_suffix(NUMBER) else { return false };
        let earlier = before.trim_end_matches(' ');
        let keep = if earlier.ends_with(DURATION) { earlier } else { before }.len();
        self.0.truncate(keep);
        if !self.0.ends_with(DURATION) {
            self.0.push_str(DURATION);
        }
        true
    }

    /// Adds the placeholder of a time. A date before it becomes part of the same time.
    fn put_time(&mut self) {
        let beside = self.0.trim_end_matches([' ', ',']);
        if beside.ends_with(TIME) {
            self.0.truncate(beside.len());
        } else {
            self.0.push_str(TIME);
        }
    }

    /// Adds the placeholder of a time, which replaces the name of a month or weekday. A number
    /// before the name becomes part of the same time.
    fn put_month(&mut self) {
        let beside = self.0.trim_end_matches([' ', ',']);
        if let Some(before) = beside.strip_suffix(NUMBER) {
            self.0.truncate(before.len());
        }
        self.put_time();
    }

    fn ends_with_number(&self) -> bool {
        let text = self.0.trim_end_matches([' ', ',']);
        text.ends_with(NUMBER) || text.ends_with(TIME)
    }
}

fn begins_with_number(text: &str) -> bool {
    let text = text.trim_start_matches([' ', ',']);
    text.starts_with(|c: char| c.is_ascii_digit()) || text.starts_with(NUMBER)
}

/// True if the word is the English abbreviation of a month or weekday, such as `Nov` or `Fri`.
fn is_of_date(word: &str) -> bool {
    const NAMES: [&str; 19] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
        "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
    ];
    NAMES.contains(&word)
}
