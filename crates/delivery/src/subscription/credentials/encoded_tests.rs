//! The table of encodings, both recognised ones and those that are not promised. If a library has
//! an encoder, the table uses it instead of that of `encodings`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Credentials, Ending, HIDDEN};

const SECRETS: [&str; 2] = ["k3yOfAllDeliveries42", "p4ss+/=\"&<>%\\ w0rd"];

use Expected::{Hidden, NotPromised};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Hidden,
    NotPromised,
}

type Encode = fn(&str) -> String;

const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
const URI: &AsciiSet = &NON_ALPHANUMERIC.remove(b'+').remove(b'/').remove(b'=').remove(b'&');
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn each(text: &str, spell: impl Fn(u8) -> String) -> String {
    text.bytes().map(spell).collect()
}

/// Encodes every character that is neither a letter nor a digit.
fn symbols(text: &str, spell: impl Fn(u8) -> String) -> String {
    each(text, |b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { spell(b) })
}

fn list(text: &str, between: &str, spell: impl Fn(u8) -> String) -> String {
    text.bytes().map(spell).collect::<Vec<_>>().join(between)
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn wrapped(text: &str, line_end: &str) -> String {
    let encoded = STANDARD.encode(format!("{}{text}", "x".repeat(46)));
    format!("{}{line_end}{}", &encoded[..60], &encoded[60..])
}

#[rustfmt::skip]
const TABLE: &[(&str, Encode, Expected)] = &[
    ("as it is", str::to_owned, Hidden),
    ("upper case", str::to_ascii_uppercase, Hidden),
    ("lower case", str::to_ascii_lowercase, Hidden),
    // Addresses.
    ("encodeURIComponent", percent, Hidden),
    ("encodeURI", |s| utf8_percent_encode(s, URI).to_string(), Hidden),
    ("query of a URL", |s| utf8_percent_encode(s, QUERY).to_string(), Hidden),
    ("form", |s| percent(s).replace("%20", "+"), Hidden),
    ("percent, each symbol", |s| utf8_percent_encode(s, NON_ALPHANUMERIC).to_string(), Hidden),
    ("percent, lower case", |s| percent(s).to_ascii_lowercase(), Hidden),
    ("percent, each byte", |s| each(s, |b| format!("%{b:02X}")), Hidden),
    ("%u0061", |s| each(s, |b| format!("%u{b:04X}")), Hidden),
    // JSON.
    ("JSON", json, Hidden),
    ("JSON with \\/", |s| json(s).replace('/', "\\/"), Hidden),
    ("JSON of Go", |s| json(s).replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e"), Hidden),
    ("JSON of .NET", |s| s.replace('\\', "\\\\").replace('"', "\\u0022").replace('&', "\\u0026").replace('+', "\\u002B")
        .replace('<', "\\u003C").replace('>', "\\u003E"), Hidden),
    ("\\u0061", |s| each(s, |b| format!("\\u{b:04x}")), Hidden),
    ("\\u002B of symbols", |s| symbols(s, |b| format!("\\u{b:04X}")), Hidden),
    // HTML and XML.
    ("HTML", html, Hidden),
    ("HTML with &#34;", |s| html(s).replace("&quot;", "&#34;"), Hidden),
    ("HTML of Go", |s| html(s).replace("&quot;", "&#34;").replace('+', "&#43;"), Hidden),
    ("HTML of mustache", |s| html(s).replace('=', "&#x3D;").replace('/', "&#x2F;"), Hidden),
    ("HTML of handlebars", |s| html(s).replace('=', "&#x3D;"), Hidden),
    ("&#97;", |s| each(s, |b| format!("&#{b};")), Hidden),
    ("&#097;", |s| each(s, |b| format!("&#{b:03};")), Hidden),
    ("&#x61;", |s| each(s, |b| format!("&#x{b:x};")), Hidden),
    ("&#x0061;", |s| each(s, |b| format!("&#x{b:04X};")), Hidden),
    ("&#43; of symbols", |s| symbols(s, |b| format!("&#{b};")), Hidden),
    ("&#x2B; of symbols", |s| symbols(s, |b| format!("&#x{b:X};")), Hidden),
    ("&plus;", |s| s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        .replace('+', "&plus;").replace('/', "&sol;").replace('=', "&equals;").replace('%', "&percnt;")
        .replace('\\', "&bsol;"), Hidden),
    // String literals.
    ("\\x61", |s| each(s, |b| format!("\\x{b:02x}")), Hidden),
    ("\\x2B of symbols", |s| symbols(s, |b| format!("\\x{b:02X}")), Hidden),
    ("\\u{61}", |s| each(s, |b| format!("\\u{{{b:x}}}")), Hidden),
    ("\\u{0061}", |s| each(s, |b| format!("\\u{{{b:04X}}}")), Hidden),
    ("\\u{2b} of symbols", |s| symbols(s, |b| format!("\\u{{{b:x}}}")), Hidden),
    ("\\x{61}", |s| each(s, |b| format!("\\x{{{b:x}}}")), Hidden),
    ("\\U00000061", |s| each(s, |b| format!("\\U{b:08X}")), Hidden),
    ("\\141", |s| each(s, |b| format!("\\{b:o}")), Hidden),
    ("\\0141", |s| each(s, |b| format!("\\0{b:03o}")), Hidden),
    ("\\053 of symbols", |s| symbols(s, |b| format!("\\{b:03o}")), Hidden),
    ("\\097", |s| each(s, |b| format!("\\{b:03}")), Hidden),
    ("CSS, \\000061", |s| each(s, |b| format!("\\{b:06x}")), Hidden),
    ("CSS, \\61 ", |s| each(s, |b| format!("\\{b:x} ")), Hidden),
    ("escape_ascii of Rust", |s| s.escape_default().to_string(), Hidden),
    ("quotes of a shell", |s| s.replace('\\', "\\\\").replace('"', "\\\""), Hidden),
    // Lists and dumps.
    ("Buffer", |s| format!(r#"{{"type":"Buffer","data":[{}]}}"#, list(s, ",", |b| b.to_string())), Hidden),
    ("Buffer, pretty", |s| format!("[\n    {}\n]", list(s, ",\n    ", |b| b.to_string())), Hidden),
    ("decimal, with spaces", |s| list(s, " ", |b| b.to_string()), Hidden),
    ("decimal, with a comma and a space", |s| list(s, ", ", |b| b.to_string()), Hidden),
    ("hexadecimal list", |s| list(s, ",", |b| format!("{b:02x}")), Hidden),
    ("hexadecimal list with 0x", |s| list(s, ", ", |b| format!("0x{b:02X}")), Hidden),
    ("hexadecimal list of strings", |s| list(s, ",", |b| format!("\"{b:02x}\"")), Hidden),
    ("hexadecimal, colons", |s| list(s, ":", |b| format!("{b:02X}")), Hidden),
    ("hexadecimal, dashes", |s| list(s, "-", |b| format!("{b:02X}")), Hidden),
    ("hexadecimal, spaces", |s| list(s, " ", |b| format!("{b:02x}")), Hidden),
    ("xxd", |s| s.as_bytes().chunks(2).map(hex::encode).collect::<Vec<_>>().join(" "), Hidden),
    ("hexadecimal", |s| hex::encode(s), Hidden),
    ("hexadecimal, upper case", |s| hex::encode_upper(s), Hidden),
    ("octal list", |s| list(s, " ", |b| format!("{b:03o}")), Hidden),
    // Base64 and mail.
    ("base64", base64, Hidden),
    ("base64 without padding", |s| STANDARD_NO_PAD.encode(s), Hidden),
    ("base64url", |s| URL_SAFE.encode(s), Hidden),
    ("base64url without padding", |s| URL_SAFE_NO_PAD.encode(s), Hidden),
    ("base64, second alignment", |s| STANDARD.encode(format!("x{s}yz")), Hidden),
    ("base64, third alignment", |s| STANDARD.encode(format!("xx{s}yz")), Hidden),
    ("base64, wrapped", |s| wrapped(s, "\r\n"), Hidden),
    ("base64, wrapped, in JSON", |s| wrapped(s, "\\n"), Hidden),
    ("quoted-printable", |s| s.replace('=', "=3D"), Hidden),
    ("quoted-printable, each byte", |s| each(s, |b| format!("={b:02X}")), Hidden),
    ("quoted-printable, wrapped", |s| s.replace('=', "=3D").replacen('s', "s=\r\n", 1), Hidden),
    // UTF-16.
    ("UTF-16", |s| String::from_utf8(utf16(s)).unwrap(), Hidden),
    ("UTF-16 in base64", |s| STANDARD.encode(utf16(s)), Hidden),
    ("UTF-16 in hexadecimal", |s| hex::encode(utf16(s)), Hidden),
    ("control characters within", |s| s.chars().fold(String::new(), |mut all, c| { let _ = write!(all, "{c}\u{1}"); all }), Hidden),
    // Two and three on top of each other.
    ("percent twice", |s| percent(&percent(s)), Hidden),
    ("percent three times", |s| percent(&percent(&percent(s))), Hidden),
    ("JSON twice", |s| json(&json(s)), Hidden),
    ("JSON three times", |s| json(&json(&json(s))), Hidden),
    ("HTML twice", |s| html(&html(s)), Hidden),
    ("HTML three times", |s| html(&html(&html(s))), Hidden),
    ("base64 twice", |s| base64(&base64(s)), Hidden),
    ("base64 three times", |s| base64(&base64(&base64(s))), Hidden),
    ("hexadecimal three times", |s| hex::encode(hex::encode(hex::encode(s))), Hidden),
    ("base64 in percent in JSON", |s| json(&percent(&base64(s))), Hidden),
    ("JSON in base64", |s| base64(&format!(r#"{{"authorization":"{}"}}"#, json(s))), Hidden),
    ("JSON in base64 in percent", |s| percent(&base64(&format!(r#"["{}"]"#, json(s)))), Hidden),
    ("percent in HTML in base64", |s| base64(&html(&percent(s))), Hidden),
    ("hexadecimal in base64 in JSON", |s| json(&base64(&hex::encode(s))), Hidden),
    ("base64 in hexadecimal in base64", |s| base64(&hex::encode(base64(s))), Hidden),
    ("JSON in JSON in HTML", |s| html(&json(&json(s))), Hidden),
    ("percent in a Buffer", |s| list(&percent(s), ",", |b| b.to_string()), Hidden),
    ("base64 in a Buffer", |s| list(&base64(s), ",", |b| b.to_string()), Hidden),
    ("JSON in a hexadecimal list", |s| list(&json(s), ":", |b| format!("{b:02x}")), Hidden),
    ("Buffer in base64", |s| base64(&list(s, ",", |b| b.to_string())), Hidden),
    ("\\u0061 in JSON", |s| json(&each(s, |b| format!("\\u{b:04x}"))), Hidden),
    ("\\u0061 in base64", |s| base64(&each(s, |b| format!("\\u{b:04x}"))), Hidden),
    ("\\141 in JSON", |s| json(&each(s, |b| format!("\\{b:o}"))), Hidden),
    ("\\x61 in percent", |s| percent(&each(s, |b| format!("\\x{b:02x}"))), Hidden),
    ("&#97; in JSON in percent", |s| percent(&json(&each(s, |b| format!("&#{b};")))), Hidden),
    // docs/reference/credentials.md does not promise these.
    ("four times base64", |s| base64(&base64(&base64(&base64(s)))), NotPromised),
    ("reversed", |s| s.chars().rev().collect(), NotPromised),
    ("base64 of the reversed text", |s| base64(&s.chars().rev().collect::<String>()), NotPromised),
    ("ROT13", |s| each(s, |b| char::from(match b {
        b'a'..=b'z' => (b - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (b - b'A' + 13) % 26 + b'A',
        other => other,
    }).to_string()), NotPromised),
    ("words between", |s| format!("{} and {}", &s[..9], &s[9..]), NotPromised),
    ("spaces between", |s| list(s, "  ", |b| char::from(b).to_string()), NotPromised),
    ("two fields", |s| format!(r#"{}","b":"{}"#, &s[..10], &s[10..]), NotPromised),
    ("a part", |s| s[..12].to_owned(), NotPromised),
    ("masked", |s| format!("{}****{}", &s[..4], &s[12..]), NotPromised),
    ("binary digits", |s| each(s, |b| format!("{b:08b}")), NotPromised),
    ("each letter another escape", |s| s.char_indices().map(|(at, c)| match at % 3 {
        0 => format!("\\u{:04x}", u32::from(c)),
        1 => format!("&#{};", u32::from(c)),
        _ => format!("%{:02x}", u32::from(c)),
    }).collect(), NotPromised),
];

#[test]
fn every_encoding_is_hidden_or_not_promised() {
    for secret in SECRETS {
        let mut credentials = Credentials::default();
        credentials.add(secret.as_bytes());
        for (name, encode, expected) in TABLE {
            let echo = encode(secret);
            let text = format!("<you sent {echo}>");
            let kept = credentials.hide_in_text(text.clone());
            let found = if kept == text { NotPromised } else { Hidden };
            assert_eq!(found, *expected, "{name} of {secret}: {text} became {kept}");
            if *expected == Hidden {
                // With base64, a part of the first and of the last character may remain.
                let left = kept.replace(HIDDEN, "").len() - "<you sent >".len();
                assert!(left <= encode("").len() + 12, "{name} of {secret}: {kept}");
            }
        }
    }
}

#[test]
fn the_table_has_every_kind_of_encoding() {
    let hidden = TABLE.iter().filter(|(_, _, expected)| *expected == Hidden).count();
    assert!(hidden >= 82 && TABLE.len() > hidden, "{hidden}");
}

#[test]
fn what_each_language_keeps_in_a_query_is_recognised() {
    let secret = "k3y!with~tilde'(and*)";
    let mut credentials = Credentials::default();
    credentials.add(secret.as_bytes());
    for (language, echo) in [
        (".NET", "k3y!with%7etilde%27(and*)"),
        ("JavaScript", "k3y!with~tilde'(and*)"),
        ("Python", "k3y%21with~tilde%27%28and%2A%29"),
    ] {
        let text = format!("<you sent {echo}>");
        let hidden = credentials.hide(text.as_bytes(), Ending::Whole);
        assert_eq!(hidden, Some(format!("<you sent {HIDDEN}>").into_bytes()), "{language}");
    }
}

#[test]
fn an_encoding_that_is_cut_leaves_nothing_of_the_secret() {
    for secret in SECRETS {
        let mut credentials = Credentials::default();
        credentials.add(secret.as_bytes());
        for (name, encode, _) in TABLE.iter().filter(|(_, _, expected)| *expected == Hidden) {
            let echo = encode(secret);
            let cut = echo.get(..echo.len() * 9 / 10).unwrap_or(&echo);
            let text = format!("<you sent {cut}");
            let is_hidden = credentials.hide(text.as_bytes(), Ending::Cut).is_some();
            assert!(is_hidden, "{name} of {secret}: {text}");
        }
    }
}
