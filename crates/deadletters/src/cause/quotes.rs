//! Classifies quoted parts of a text as names or values.
//!
//! Separate because the classification is a heuristic of its own. A name is a part of the cause: a
//! field (`unknown field "amount"`), a media type, an HTTP method, a pattern that a value must
//! match. A value belongs to one event. These signs mark a value:
//!
//! - its form: `"red shoes, size 42"`;
//! - the word before it: `Duplicate entry 'jane'`, `received 'usd'`, `unsupported currency 'usd'`,
//!   but not `unknown field 'usd'`;
//! - the words after it: `"usd" is not a valid choice`.

use super::template::{self, NUMBER};

/// Maximum length of an identifier. A longer quoted text is not an identifier.
const IDENTIFIER_MAX_CHARS: usize = 40;
/// Maximum length of a pattern. Longer patterns count as values.
const PATTERN_MAX_CHARS: usize = 60;
/// Words before a quoted value. Quoted text after one of these words is a value, whatever its form.
const BEFORE_VALUES: &str = "entry value values got received was input found user customer username sku id uuid \
    string invalid unknown unsupported parsing literal";
/// Words that state a defect. Quoted text after one of these words and a noun is a value, as in
/// `unsupported currency 'usd'`.
const DOUBTS: &str = "invalid unknown unsupported unrecognized unrecognised unexpected illegal bad wrong \
    incorrect malformed convert";
/// Words for things whose names are the same for every event. Quoted text after one of these words
/// is a name.
const NAMED: &str = "field fields property properties parameter parameters param attribute column key member \
    argument header option variable keyword type table relation function method index \
    constraint module class enum topic queue database schema role route scope permission \
    service name view";
/// Words after a quoted value, as in `"usd" is not a valid choice`.
const AFTER_VALUES: [&str; 17] = [
    "is not a valid ",
    "is not an allowed ",
    "is not an accepted ",
    "is not a supported ",
    "is not a recognized ",
    "is not one of",
    "is not among",
    "is not of type",
    "is not in ",
    "is not supported",
    "is an invalid ",
    "already ",
    "has already ",
    "is already ",
    "does not match '",
    "does not match the",
    "could not be parsed",
];
/// Words after a quoted field name: `invalid request: 'email' is required`.
const AFTER_FIELDS: [&str; 8] = [
    "is required",
    "is missing",
    "is not allowed",
    "must ",
    "should ",
    "cannot be",
    "can't be",
    "may not be",
];
/// Words before a quoted pattern. Quoted text after one of these words is a pattern if it has the
/// form of one.
const BEFORE_PATTERNS: &str = "match matches matching pattern regex regexp expression";
const MEDIA_TYPES: [&str; 7] =
    ["application/", "text/", "multipart/", "image/", "audio/", "video/", "font/"];
const METHODS: &str = "GET HEAD POST PUT PATCH DELETE OPTIONS";

pub(super) struct Quoted<'b, 'a> {
    /// The text before the quoted part.
    before: &'b str,
    /// The quoted part with its quotation marks.
    pub(super) whole: &'a str,
    /// The quoted part without its quotation marks.
    inner: &'a str,
    /// The text after the quoted part.
    pub(super) after: &'a str,
}

/// Returns the quoted part at the beginning of `text`. An apostrophe within a word is not a
/// quotation mark.
pub(super) fn quoted<'b, 'a>(before: &'b str, text: &'a str) -> Option<Quoted<'b, 'a>> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        // PostgreSQL: `Key (sku)=(A 1) already exists`.
        '(' if before.ends_with('=') => ')',
        _ => return None,
    };
    if before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let mut rest = text.strip_prefix(open)?;
    loop {
        let (_, after) = rest.split_once(close)?;
        if !after.starts_with(char::is_alphanumeric) {
            let whole = text.strip_suffix(after)?;
            let inner = whole.strip_prefix(open)?.strip_suffix(close)?;
            return Some(Quoted { before, whole, inner, after });
        }
        rest = after;
    }
}

impl Quoted<'_, '_> {
    /// Returns the quoted part with its quotation marks if it is a name; `None` if it is a value.
    /// Indexes in the name become placeholders.
    pub(super) fn name(&self) -> Option<String> {
        let Self { whole, inner, .. } = self;
        if self.is_media_type()
            || self.is_pattern()
            || METHODS.split(' ').any(|method| method == *inner)
        {
            return Some((*whole).to_owned());
        }
        let is_value = self.is_after_value_word() || self.is_before(&AFTER_VALUES);
        if whole.starts_with('(') || is_value && !self.is_after_named() {
            return None;
        }
        let name = identifier(inner)?;
        Some(whole.replacen(inner, &name, 1))
    }

    fn is_media_type(&self) -> bool {
        let is_of_type = |c: char| c.is_ascii_alphanumeric() || "/-+.;=* ".contains(c);
        let is_known = MEDIA_TYPES.iter().any(|beginning| self.inner.starts_with(beginning));
        is_known && self.inner.len() <= IDENTIFIER_MAX_CHARS && self.inner.chars().all(is_of_type)
    }

    fn is_pattern(&self) -> bool {
        let [_, word] = self.words_before();
        let has_sign = self.inner.contains(['^', '$', '[', '\\', '*', '+', '{', '|']);
        has_sign && self.inner.len() <= PATTERN_MAX_CHARS && is_in(BEFORE_PATTERNS, word)
    }

    fn is_after_value_word(&self) -> bool {
        let [earlier, word] = self.words_before();
        // `invalid input syntax for type uuid: "x"`.
        let is_after_colon = self.before.trim_end().ends_with(':')
            && self.before.split(|c: char| !c.is_alphanumeric()).any(|part| is_in(DOUBTS, part));
        let is_doubtful = is_after_colon || is_in(DOUBTS, earlier);
        is_in(BEFORE_VALUES, word) || is_doubtful && !self.is_before(&AFTER_FIELDS)
    }

    /// True if a word in [`NAMED`] precedes the quoted part: `unknown field "x"`.
    fn is_after_named(&self) -> bool {
        let [_, word] = self.words_before();
        is_in(NAMED, word)
    }

    fn is_before(&self, beginnings: &[&str]) -> bool {
        let after = self.after.trim_start();
        beginnings.iter().any(|words| after.starts_with(words))
    }

    /// Returns the two words before the quoted part, without a colon.
    fn words_before(&self) -> [&str; 2] {
        let mut words = self.before.trim_end_matches([' ', ':']).rsplit(' ');
        let last = words.next().unwrap_or_default();
        [words.next().unwrap_or_default(), last]
    }
}

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| word.eq_ignore_ascii_case(listed))
}

/// Returns the text if it is a short path of words: `Customer.getEmail()`, `/data/name`. Indexes
/// become placeholders: `order.lines[<number>].price`. Returns `None` for any other text, such as a
/// path that contains an id.
fn identifier(inner: &str) -> Option<String> {
    let path = inner.strip_suffix("()").unwrap_or(inner).replace(NUMBER, "0");
    let is_begin = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '/');
    if !path.starts_with(is_begin) || inner.len() > IDENTIFIER_MAX_CHARS {
        return None;
    }
    let separators = if path.starts_with('/') { &['/'][..] } else { &['.', '[', ']'] };
    let mut name = String::new();
    for part in path.split_inclusive(separators) {
        let word = part.trim_end_matches(separators);
        let is_word = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
        if !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()) {
            name.push_str(NUMBER);
        } else if is_word && template::generalize(word) == word {
            name.push_str(word);
        } else {
            return None;
        }
        name.push_str(part.strip_prefix(word).unwrap_or_default());
    }
    name.push_str(if inner.ends_with("()") { "()" } else { "" });
    Some(name)
}
