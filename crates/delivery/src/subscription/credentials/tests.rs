//! Hidden spellings, one by one. Random values in random text: `tests/tests/rules/credentials.rs`.

use super::*;

fn of_values(values: &[&str]) -> Credentials {
    let mut credentials = Credentials::default();
    values.iter().for_each(|value| credentials.add(value.as_bytes()));
    credentials
}

fn of_header(value: &str) -> Credentials {
    let mut credentials = Credentials::default();
    credentials.add_header(value);
    credentials
}

fn of_url(url: &str) -> Credentials {
    let mut credentials = Credentials::default();
    credentials.add_url(&url.parse().unwrap());
    credentials
}

fn hidden(credentials: &Credentials, text: &str) -> String {
    credentials.hide_in_text(text.to_owned())
}

#[test]
fn headers_that_hold_credentials_are_known_by_the_last_word_of_their_name() {
    for name in [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "x-api-key",
        "API-KEY",
        "X-ApiKey",
        "x-amz-security-token",
        "client_secret",
        "Ocp-Apim-Subscription-Key",
        "token",
        "x-auth",
        "db_pass",
        "X-Passwd",
        "x-jwt",
        "amz-credential",
        "x-credentials",
        "accessToken",
        "x-accesskey",
    ] {
        assert!(is_credential(name), "{name}");
    }
    for name in [
        "x-tenant",
        "keyboard",
        "x-key-id",
        "tokens",
        "content-type",
        "x-pass-through",
        "compass",
        "x-auth-mode",
        "author",
        "",
    ] {
        assert!(!is_credential(name), "{name}");
    }
}

#[test]
fn the_documentation_names_the_last_words_of_credentials() {
    let page = include_str!("../../../../../docs/reference/credentials.md").split_whitespace();
    let page = page.collect::<Vec<_>>().join(" ");
    let (_, listed) = page.split_once("whose name ends with the word ").unwrap();
    let (listed, _) = listed.split_once(" (").unwrap();
    let mut listed: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    let mut words = LAST_WORDS.to_vec();
    listed.sort_unstable();
    words.sort_unstable();
    assert_eq!(listed, words);
}

#[test]
fn a_value_is_hidden_in_every_spelling() {
    for (text, shown) in [
        ("you sent a/B \"c+d", "you sent [secret]"),
        ("x A/b \"C+D x", "x [secret] x"),
        (r#"{"echo":"a\/B \"c+d"}"#, r#"{"echo":"[secret]"}"#),
        (r#"{"echo":"a/B \u0022c\u002bd"}"#, r#"{"echo":"[secret]"}"#),
        (r#""{\"echo\":\"a/B \\\"c+d\"}""#, r#""{\"echo\":\"[secret]\"}""#),
        ("?code=a%2FB%20%22c%2Bd&x", "?code=[secret]&x"),
        ("?code=a%2fB+%22c%2bd&x", "?code=[secret]&x"),
        ("?code=a%252FB%2520%2522c%252Bd", "?code=[secret]"),
        ("hex 612f42202263", "hex 612f42202263"),
        ("hex 612f422022632b64.", "hex [secret]."),
        ("hex 00612F422022632B6400", "hex 00[secret]00"),
    ] {
        assert_eq!(hidden(&of_values(&["a/B \"c+d"]), text), shown, "{text}");
    }
}

#[test]
fn a_value_is_hidden_in_hexadecimal_digits_with_something_between() {
    for (text, shown) in [
        ("hex 68:75:73:68:2F:31.", "hex [secret]."),
        ("hex 68-75-73-68-2f-31.", "hex [secret]."),
        ("hex 68 75 73 68 2f 31.", "hex [secret]."),
        ("00000000: 6875 7368 2f31 0a", "00000000: [secret] 0a"),
        ("3a:68:75:73:68:2f:31:0d:0a", "3a:[secret]:0d:0a"),
        ("68:75:73:68:25:32:46:31", "[secret]"),
        ("0x68, 0x75, 0x73, 0x68, 0x2f, 0x31", "[secret]"),
        ("xx 61:62:63.", "xx [secret]."),
        ("xx 61:62:63:64.", "xx 61:62:63:64."),
        ("be 616263.", "be [secret]."),
        ("2026-11-20 07:03:00, dead beef, be added", "2026-11-20 07:03:00, dead beef, be added"),
    ] {
        assert_eq!(hidden(&of_values(&["hush/1", "abc"]), text), shown, "{text}");
    }
}

#[test]
fn a_value_is_hidden_where_control_characters_are_in_it() {
    let credentials = of_values(&["hush/k", "abc", "two words"]);
    for (text, shown) in [
        ("a\0 \0h\0u\0s\0h\0/\0k\0.\0", "a\0 \0[secret]\0.\0"),
        ("\0h\0u\0s\0h\0%\u{0}2\0f\0k", "\0[secret]"),
        ("hu\r\nsh/k", "[secret]"),
        ("two\nwords", "[secret]"),
        ("hu\u{85}sh\u{7f}/\u{9f}k", "[secret]"),
        (r"h\u0000u\u0000s\u0000h\u0000/\u0000k", "[secret]"),
        ("bgBvACwAIABoAHUAcwBoAC8AawA=", "bgBvACwAIAB[secret]wA="),
        ("x\0 \0a\0b\0c\0 \0x", "x\0 \0[secret]\0 \0x"),
        ("h\u{e9}ush/2\r\n\u{a0}", "h\u{e9}ush/2\r\n\u{a0}"),
    ] {
        assert_eq!(hidden(&credentials, text), shown, "{text:?}");
    }
    let cut = credentials.hide(b"x \0h\0u\0s\0", Ending::Cut);
    assert_eq!(cut.as_deref(), Some(&b"x \0[secret]"[..]));
}

#[test]
fn a_short_value_is_hidden_where_it_stands_alone() {
    for (value, text, shown) in [
        (
            "1",
            r#"{"error":1,"line":21,"v1":"1"}"#,
            r#"{"error":[secret],"line":21,"v1":"[secret]"}"#,
        ),
        ("e", "even e before the end", "even [secret] before the end"),
        ("abc", "key_abc abcd xabc ABC", "key_[secret] abcd xabc [secret]"),
        ("abc", "YWJj 616263 xxxxYWJj", "[secret] [secret] xxxxYWJj"),
        ("é", "né é", "né [secret]"),
        ("abcd", "xabcdx", "x[secret]x"),
    ] {
        assert_eq!(hidden(&of_values(&[value]), text), shown, "{value} in {text}");
    }
}

#[test]
fn the_beginning_of_a_value_at_the_end_of_a_cut_text_is_hidden() {
    let credentials = of_values(&["hush-hush/x", "abc"]);
    for (text, shown) in [
        ("you sent hush-hu", "you sent [secret]"),
        ("you sent hush-hush", "you sent [secret]"),
        ("you sent hush-hush%2", "you sent [secret]"),
        ("you sent hush-hush\\", "you sent [secret]"),
        ("you sent hush-hush\\u00", "you sent [secret]"),
        ("hex 687573682d6875736", "hex [secret]"),
        ("base64 aHVzaC1od", "base64 [secret]"),
        ("short ab", "short [secret]"),
        ("no nab", "no nab"),
    ] {
        let cut = credentials.hide(text.as_bytes(), Ending::Cut);
        let cut = cut.map_or(text.to_owned(), |cut| String::from_utf8(cut).unwrap());
        assert_eq!(cut, shown, "{text}");
    }
    assert_eq!(hidden(&credentials, "you sent hush-hu"), "you sent hush-hu");
}

#[test]
fn the_parts_of_a_header_are_hidden_as_well() {
    for (header, echo, shown) in [
        ("Bearer hush-hush", "hush-hush of Bearer", "[secret] of Bearer"),
        ("Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA", "[secret]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "password of user", "[secret] of [secret]"),
        ("session=abcdef; theme=\"dark blue\"", "got abcdef", "got [secret]"),
        ("SharedAccessSignature sr=host&sig=a%2Fb%3D", "sig a%2Fb%3D", "sig [secret]"),
        (" padded-value\n", "<padded-value>", "<[secret]>"),
    ] {
        assert_eq!(hidden(&of_header(header), echo), shown, "{header}");
    }
}

#[test]
fn what_is_confidential_in_an_address_is_hidden() {
    let credentials =
        of_url("https://us%40er:p%3Ass@example.com/path?code=a%2Fb%2Bc&bare-token&empty=");
    for (echo, shown) in [
        ("us@er", "[secret]"),
        ("p:ss", "[secret]"),
        ("a/b+c", "[secret]"),
        ("?code=a%2Fb%2Bc", "?code=[secret]"),
        ("bare-token", "[secret]"),
        ("/path example.com", "/path example.com"),
    ] {
        assert_eq!(hidden(&credentials, echo), shown);
    }
    let mut credentials = Credentials::default();
    credentials.add_path(&"https://hooks.example.com/services/T0/B1/x%2Fyz".parse().unwrap());
    assert_eq!(hidden(&credentials, "no /services/T0/B1/x%2fyz"), "no /[secret]");
    assert_eq!(hidden(&credentials, "no x/yz in T0"), "no [secret] in [secret]");
}

#[test]
fn a_text_is_hidden_as_a_whole_if_there_are_too_many_values() {
    let values: Vec<String> = (0..=CREDENTIALS_MAX).map(|n| format!("value {n} of many")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    assert_eq!(hidden(&of_values(&values), "not one of them"), HIDDEN);
    assert_eq!(hidden(&of_values(&values[1..]), "not one of them"), "not one of them");
}

#[test]
fn no_value_is_printed() {
    assert_eq!(format!("{:?}", of_values(&["hush-hush", "hush"])), "Credentials(2)");
}

#[test]
fn a_value_that_repeats_itself_is_found_in_a_text_that_does() {
    let text = vec![b'a'; 64 * 1_024];
    let value = "a".repeat(100) + "b";
    assert_eq!(of_values(&[&value]).hide(&text, Ending::Whole), None);
    let value = "a".repeat(4_096);
    assert_eq!(of_values(&[&value]).hide(&text, Ending::Whole), Some(HIDDEN.into()));
}

#[test]
fn the_values_of_one_request_are_hidden_in_single_encodings() {
    let mut credentials = Credentials::of_one_request();
    credentials.add(b"Signature=5d672d79c15b13162d9279b0855cfba6");
    credentials.add(b"5d672d79c15b13162d9279b0855cfba6");
    for (text, shown) in [
        ("no Signature=5d672d79c15b13162d9279b0855cfba6.", "no [secret]."),
        ("no Signature%3D5d672d79c15b13162d9279b0855cfba6.", "no Signature%3D[secret]."),
        ("no NWQ2NzJkNzljMTViMTMxNjJkOTI3OWIwODU1Y2ZiYTY=.", "no [secret]."),
    ] {
        assert_eq!(hidden(&credentials, text), shown);
    }
}

#[test]
fn a_value_that_is_added_later_is_hidden_too() {
    let mut credentials = of_values(&["hush-hush"]);
    assert_eq!(hidden(&credentials, "hush-hush, other-one"), "[secret], other-one");
    credentials.add(b"other-one");
    assert_eq!(hidden(&credentials, "hush-hush, other-one"), "[secret], [secret]");
    assert_eq!(hidden(&credentials.certain(), "hush-hush"), "[secret]");
}

#[test]
fn a_long_value_is_hidden_to_its_end_and_so_is_its_beginning() {
    let value: String = (0..400).map(|n| format!("{n}-")).collect();
    let credentials = of_values(&[&value]);
    assert_eq!(hidden(&credentials, &format!("<{value}>")), "<[secret]>");
    let beginning = &value[..value.len() / 2];
    assert_eq!(hidden(&credentials, &format!("<{beginning}; and more>")), "<[secret]; and more>");
    let encoded = STANDARD.encode(format!("user:{value}"));
    assert!(hidden(&credentials, &encoded).len() < 20, "{}", hidden(&credentials, &encoded));
}
