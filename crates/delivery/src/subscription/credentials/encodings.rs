//! Encodes a text as other programs write it: JSON, HTML, URLs, string literals, dumps and base64.
//!
//! This module is separate because it lists the ways in which other programs encode texts. Common
//! encodings come first. An encoder may return the text unchanged; `spellings` removes duplicates.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Returns true if an encoder writes the character unescaped.
type Keeps = fn(char) -> bool;
/// Returns the escape sequence for a character.
type Escape = fn(char) -> String;

/// Number of leading entries in the results of [`common`] and [`every`] that are fragments of
/// base64 texts.
pub(super) const PARTS_OF_BASE64: usize = 3;

/// Encodes a text in the ways that programs often apply to texts that are already encoded.
pub(super) fn common(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = base64(text);
    all.extend([
        percent(text, is_unreserved),
        json(text, '/'),
        json(text, '\\'),
        escaped(text, |c| !matches!(c, '&' | '<' | '>' | '"' | '\''), html_common),
        hex(text),
    ]);
    all
}

/// Encodes a text in every known way, the common ways first.
pub(super) fn every(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = common(text);
    all.extend(whole_base64(text));
    // Upper case makes a difference if the digits are then encoded in base64.
    all.push(hex::encode_upper(text).into_bytes());
    all.push(bytes_escaped(text, is_unreserved, |byte| format!("%{byte:02x}")));
    all.extend(in_addresses(text));
    all.extend(in_json(text));
    all.extend(in_html(text));
    all.extend(as_literals(text));
    all.extend(as_lists(text));
    all.extend(as_utf16(text));
    all.extend([
        quoted_printable(text, |c| is_printable(c) && c != '='),
        quoted_printable(text, char::is_alphanumeric),
        quoted_printable(text, |_| false),
    ]);
    all
}

/// Encodes the whole text in base64, with and without padding.
fn whole_base64(text: &[u8]) -> [Vec<u8>; 2] {
    [STANDARD.encode(text).into_bytes(), STANDARD_NO_PAD.encode(text).into_bytes()]
}

/// Encodes a text in base64 at each of the three alignments that it can have in a longer text. The
/// results have only the characters that do not depend on the neighbouring bytes.
fn base64(text: &[u8]) -> Vec<Vec<u8>> {
    let aligned = |before: usize| {
        let padded = [&b"xx"[..before], text, b"xx"].concat();
        let (from, to) = ((before * 8).div_ceil(6), (before + text.len()) * 8 / 6);
        STANDARD_NO_PAD.encode(padded).get(from..to).unwrap_or_default().into()
    };
    (0..PARTS_OF_BASE64).map(aligned).collect()
}

fn hex(text: &[u8]) -> Vec<u8> {
    hex::encode(text).into_bytes()
}

/// Encodes a text with percent-encoding (RFC 3986, 2.1). Characters for which `keeps` is true stay
/// unchanged.
fn percent(text: &[u8], keeps: Keeps) -> Vec<u8> {
    bytes_escaped(text, keeps, |byte| format!("%{byte:02X}"))
}

/// Encodes a text as quoted-printable (RFC 2045, 6.7). Characters for which `keeps` is true stay
/// unchanged.
fn quoted_printable(text: &[u8], keeps: Keeps) -> Vec<u8> {
    bytes_escaped(text, keeps, |byte| format!("={byte:02X}"))
}

fn in_addresses(text: &[u8]) -> Vec<Vec<u8>> {
    // Each function returns true for characters that an encoder does not escape. The encoders are,
    // in this order: HTML forms, .NET forms, `encodeURIComponent`, `encodeURI`, `escape`, Python,
    // Go paths and two URL parsers. Two more functions follow: one is true only for letters and
    // digits, the other for no character.
    let sets: [Keeps; 11] = [
        |c| c == ' ' || is_word(c) || "*-.".contains(c),
        |c| c == ' ' || is_word(c) || "-.!*()".contains(c),
        |c| is_word(c) || "-.!~*'()".contains(c),
        |c| is_word(c) || "-.!~*'();/?:@&=+$,#".contains(c),
        |c| is_word(c) || "@*+-./".contains(c),
        |c| is_unreserved(c) || c == '/',
        |c| is_unreserved(c) || "$&+=:@".contains(c),
        |c| c.is_ascii_graphic() && !"\"#<>".contains(c),
        |c| c.is_ascii_graphic() && !"\"#<>?`{}%\\".contains(c),
        |c| c.is_ascii_alphanumeric(),
        |_| false,
    ];
    let unicode = escaped(text, is_unreserved, |c| match u32::from(c) {
        code @ 0..=0xff => format!("%{code:02X}"),
        _ => units(c, "%u", ""),
    });
    let all_unicode = escaped(text, |_| false, |c| units(c, "%u", ""));
    sets.into_iter().map(|keeps| percent(text, keeps)).chain([unicode, all_unicode]).collect()
}

/// Encodes a text as the content of a JSON string (RFC 8259, 7). It escapes only the required
/// characters, and `also`.
fn json(text: &[u8], also: char) -> Vec<u8> {
    let is_plain = |c: char| !c.is_ascii_control() && !matches!(c, '"' | '\\');
    let spell = |c: char| if is_plain(c) && c != also { c.to_string() } else { json_short(c) };
    chars(text).map(spell).collect::<String>().into_bytes()
}

fn json_short(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '"' | '\\' | '/' => format!("\\{c}"),
        other => unicode_literal(other),
    }
}

fn in_json(text: &[u8]) -> Vec<Vec<u8>> {
    let sets: [(Keeps, Escape); 6] = [
        // The result is ASCII only, as Python and PHP write JSON.
        (|c| is_printable(c) && !"\"\\".contains(c), json_short),
        (|c| is_printable(c) && !"\"\\/".contains(c), json_short),
        // The result is safe in HTML, as Go and PHP write JSON.
        (|c| !c.is_ascii_control() && !"\"\\<>&".contains(c), json_in_html),
        (|c| is_printable(c) && !"\"\\<>&'".contains(c), json_in_html),
        (
            |c| is_printable(c) && !"\"\\/<>&'".contains(c),
            |c| match c {
                '\\' | '/' => json_short(c),
                other => unicode_literal(other),
            },
        ),
        // The result is JSON as .NET writes it.
        (
            |c| is_printable(c) && !"\"\\<>&'+`".contains(c),
            |c| match c {
                '\\' => json_short(c),
                other => unicode_literal(other),
            },
        ),
    ];
    sets.into_iter().map(|(keeps, escape)| escaped(text, keeps, escape)).collect()
}

fn json_in_html(c: char) -> String {
    if "<>&'".contains(c) { unicode_literal(c) } else { json_short(c) }
}

fn in_html(text: &[u8]) -> Vec<Vec<u8>> {
    let has = |c: char| u8::try_from(c).is_ok_and(|byte| text.contains(&byte));
    let quotes = ["&quot;", "&#34;", "&#x22;", "\""];
    let apostrophes = ["&#39;", "&#x27;", "&#039;", "&apos;", "'"];
    let mut all = Vec::new();
    for quote in quotes.iter().take(if has('"') { quotes.len() } else { 1 }) {
        for apostrophe in apostrophes.iter().take(if has('\'') { apostrophes.len() } else { 1 }) {
            for more in ["", "+", "/", "/=`", "="] {
                let spell = |c: char| match c {
                    '"' => (*quote).to_owned(),
                    '\'' => (*apostrophe).to_owned(),
                    '+' if more == "+" => html_decimal(c),
                    other if more.contains(other) => html_hex(other),
                    other => html_common(other),
                };
                all.push(chars(text).map(spell).collect::<String>().into_bytes());
            }
        }
    }
    let escapes: [Escape; 5] = [
        html_decimal,
        html_hex,
        |c| format!("&#x{:04x};", u32::from(c)),
        |c| format!("&#{:03};", u32::from(c)),
        html_named,
    ];
    all.extend(in_each_set(text, &escapes));
    all
}

/// Escapes a character for HTML as most programs do.
fn html_common(c: char) -> String {
    match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        other => other.to_string(),
    }
}

fn html_decimal(c: char) -> String {
    format!("&#{};", u32::from(c))
}

fn html_hex(c: char) -> String {
    format!("&#x{:x};", u32::from(c))
}

/// Named character references of ASCII characters, from the HTML standard.
const HTML_NAMES: [(char, &str); 33] = [
    ('&', "amp"),
    ('<', "lt"),
    ('>', "gt"),
    ('"', "quot"),
    ('\'', "apos"),
    ('+', "plus"),
    ('/', "sol"),
    ('=', "equals"),
    ('%', "percnt"),
    ('\\', "bsol"),
    ('!', "excl"),
    ('#', "num"),
    ('$', "dollar"),
    ('(', "lpar"),
    (')', "rpar"),
    ('*', "ast"),
    (',', "comma"),
    ('.', "period"),
    (':', "colon"),
    (';', "semi"),
    ('?', "quest"),
    ('@', "commat"),
    ('[', "lsqb"),
    (']', "rsqb"),
    ('^', "hat"),
    ('_', "lowbar"),
    ('`', "grave"),
    ('{', "lcub"),
    ('|', "verbar"),
    ('}', "rcub"),
    ('-', "hyphen"),
    ('\n', "newline"),
    ('\t', "tab"),
];

fn html_named(c: char) -> String {
    match HTML_NAMES.iter().find(|(named, _)| *named == c) {
        Some((_, name)) => format!("&{name};"),
        None => c.to_string(),
    }
}

/// Encodes a text with the escapes of string literals in programming languages and style sheets.
fn as_literals(text: &[u8]) -> Vec<Vec<u8>> {
    let of_bytes: [fn(u8) -> String; 5] = [
        |byte| format!("\\x{byte:02x}"),
        |byte| format!("\\{byte:03o}"),
        |byte| format!("\\{byte:o}"),
        |byte| format!("\\0{byte:03o}"),
        |byte| format!("\\{byte:03}"),
    ];
    let of_characters: [Escape; 7] = [
        unicode_literal,
        |c| format!("\\u{{{:x}}}", u32::from(c)),
        |c| format!("\\u{{{:04x}}}", u32::from(c)),
        |c| format!("\\x{{{:x}}}", u32::from(c)),
        |c| format!("\\U{:08x}", u32::from(c)),
        |c| format!("\\{:06x}", u32::from(c)),
        |c| format!("\\{:x} ", u32::from(c)),
    ];
    let sets: [Keeps; 4] = [|_| false, char::is_alphanumeric, is_unreserved, is_plain_in_literals];
    let bytes =
        sets.iter().flat_map(|keeps| of_bytes.map(|escape| bytes_escaped(text, *keeps, escape)));
    let quoted = escaped(text, |c| !matches!(c, '\'' | '\\'), |c| format!("\\{c}"));
    let quotes = escaped(text, |c| !matches!(c, '\'' | '"' | '\\'), |c| format!("\\{c}"));
    let for_shells = escaped(text, |c| is_word(c) || "-./:=+@%,".contains(c), |c| format!("\\{c}"));
    bytes.chain(in_each_set(text, &of_characters)).chain([quoted, quotes, for_shells]).collect()
}

/// Encodes a text as a list of its byte values, as in arrays and hex dumps.
pub(super) fn as_lists(text: &[u8]) -> Vec<Vec<u8>> {
    let joined = |encode: fn(u8) -> String, between: &str| {
        text.iter().copied().map(encode).collect::<Vec<_>>().join(between).into_bytes()
    };
    let decimal: fn(u8) -> String = |byte| byte.to_string();
    let two_digits: fn(u8) -> String = |byte| format!("{byte:02x}");
    let prefixed: fn(u8) -> String = |byte| format!("0x{byte:02x}");
    let quoted: fn(u8) -> String = |byte| format!("\"{byte:02x}\"");
    let mut all = Vec::new();
    for encode in [decimal, two_digits, prefixed, quoted] {
        all.extend([",", ", ", " ", ":", ";"].map(|between| joined(encode, between)));
    }
    let octal = joined(|byte| format!("{byte:03o}"), " ");
    let indented = joined(|byte| format!("({byte})"), ",");
    let pairs = [0, 1].map(|first| {
        let digits = |(at, byte): (usize, &u8)| {
            let between = if at > 0 && at % 2 == first { " " } else { "" };
            format!("{between}{byte:02x}")
        };
        text.iter().enumerate().map(digits).collect::<String>().into_bytes()
    });
    all.into_iter().chain([octal, indented]).chain(pairs).collect()
}

/// Encodes a text in UTF-16, for texts that are then encoded once more. Plain UTF-16 needs no
/// spelling of its own, because the search skips control characters. For ASCII texts, the two byte
/// orders differ only at the ends.
fn as_utf16(text: &[u8]) -> [Vec<u8>; 2] {
    let units: Vec<u16> = chars(text).collect::<String>().encode_utf16().collect();
    [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| {
        let all: Vec<u8> = units.iter().copied().flat_map(bytes).collect();
        all.strip_suffix(b"\0").or(all.strip_prefix(b"\0")).unwrap_or(&all).to_vec()
    })
}

/// Applies each escape to four sets of characters:
/// - all characters;
/// - all except letters and digits;
/// - characters that are special in URLs;
/// - characters that are special in literals.
fn in_each_set(text: &[u8], escapes: &[Escape]) -> Vec<Vec<u8>> {
    let sets: [Keeps; 4] = [|_| false, char::is_alphanumeric, is_unreserved, is_plain_in_literals];
    let each = |escape: &Escape| sets.map(|keeps| escaped(text, keeps, *escape));
    escapes.iter().flat_map(each).collect()
}

fn escaped(text: &[u8], keeps: Keeps, escape: Escape) -> Vec<u8> {
    let spell = |c: char| if keeps(c) { c.to_string() } else { escape(c) };
    chars(text).map(spell).collect::<String>().into_bytes()
}

fn bytes_escaped(text: &[u8], keeps: Keeps, escape: impl Fn(u8) -> String) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len() * 4);
    for byte in text {
        match byte.is_ascii() && keeps(char::from(*byte)) {
            true => all.push(*byte),
            false => all.extend(escape(*byte).bytes()),
        }
    }
    all
}

/// Returns the escape sequence of a character, such as `\u0061`. A character with two UTF-16 code
/// units has two escape sequences.
fn unicode_literal(c: char) -> String {
    units(c, "\\u", "")
}

/// Returns the UTF-16 code units of a character in hexadecimal, each between `before` and `after`.
fn units(c: char, before: &str, after: &str) -> String {
    let mut buffer = [0; 2];
    c.encode_utf16(&mut buffer).iter().map(|unit| format!("{before}{unit:04x}{after}")).collect()
}

/// Returns the characters of a text. If the text is not valid UTF-8, each byte counts as a
/// character.
fn chars(text: &[u8]) -> Box<dyn Iterator<Item = char> + '_> {
    match std::str::from_utf8(text) {
        Ok(text) => Box::new(text.chars()),
        Err(_) => Box::new(text.iter().map(|byte| char::from(*byte))),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_unreserved(c: char) -> bool {
    is_word(c) || "-.~".contains(c)
}

fn is_printable(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic()
}

/// Returns true if a character may stay unescaped in literals that must be safe in HTML.
fn is_plain_in_literals(c: char) -> bool {
    is_printable(c) && !"\"'\\<>&=".contains(c)
}
